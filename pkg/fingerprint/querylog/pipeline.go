package querylog

import (
	"fmt"
	"io"
	"sync"

	"github.com/pointsman/pointsman/pkg/fingerprint"
)

// batch is a piece of the log. Workers fill out, the writer takes it in the order of reading.
type batch struct {
	statements []string // of a log of SQL
	first      int64    // number of the first statement or line
	lines      string   // of a log of JSON lines
	out        []byte
	counted    map[fingerprint.ID]*count
	result     Result
	done       chan struct{}
}

// pipeline is one reader, several workers and one writer. The channels bound what is in memory.
type pipeline struct {
	o       Options
	workers int
	jobs    chan *batch
	order   chan *batch
	free    sync.Pool
}

func newPipeline(o Options, workers int) *pipeline {
	return &pipeline{
		o: o, workers: workers, jobs: make(chan *batch, workers), order: make(chan *batch, 2*workers),
		free: sync.Pool{New: func() any { return new([]byte) }},
	}
}

func (p *pipeline) run(r io.Reader, w io.Writer) (Result, error) {
	var wait sync.WaitGroup
	for range p.workers {
		wait.Go(func() {
			worker := newWorker(p.o, p.workers)
			for b := range p.jobs {
				b.out = (*p.free.Get().(*[]byte))[:0]
				worker.batch(b)
				close(b.done)
			}
		})
	}
	var readErr error
	stop := make(chan struct{})
	wait.Go(func() {
		defer close(p.order)
		defer close(p.jobs)
		readErr = p.read(r, stop)
	})
	result, err := p.write(w, stop)
	wait.Wait()
	if err == nil && readErr != nil {
		err = fmt.Errorf("reading the query log: %w", readErr)
	}
	return result, err
}

// send hands a batch to a worker, or says that nobody wants it any more.
func (p *pipeline) send(b *batch, stop <-chan struct{}) bool {
	b.done = make(chan struct{})
	select {
	case p.order <- b:
	case <-stop:
		return false
	}
	p.jobs <- b
	return true
}

// write writes the batches in order, or adds their counts up. After an error it only drains.
func (p *pipeline) write(w io.Writer, stop chan<- struct{}) (Result, error) {
	var total Result
	var err error
	sum := newSummary()
	for b := range p.order {
		<-b.done
		total.Bytes += b.result.Bytes
		total.Statements += b.result.Statements
		total.Bad += b.result.Bad
		sum.add(b.counted)
		if err == nil && len(b.out) > 0 {
			if _, werr := w.Write(b.out); werr != nil {
				err = fmt.Errorf("writing fingerprints: %w", werr)
				close(stop)
			}
		}
		p.free.Put(&b.out)
		if p.o.Progress != nil {
			p.o.Progress(int(b.result.Bytes))
		}
	}
	if err == nil && p.o.Top > 0 {
		if _, werr := w.Write(sum.top(p.o.Top, total)); werr != nil {
			err = fmt.Errorf("writing the summary: %w", werr)
		}
	}
	return total, err
}
