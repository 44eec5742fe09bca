package publish

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/loadgen/workload"
)

// flushTimeout bounds the wait for acknowledgements after the last record, also when the run is interrupted.
const flushTimeout = 2 * deliveryTimeout

// Run sends the arrivals with a client of NewClient and reports. The report is valid whatever the error: it says what
// was sent until then. A record that was not acknowledged is an error. Progress may be nil; it is told the records
// sent so far, from one goroutine.
func Run(ctx context.Context, client *kgo.Client, arrivals iter.Seq[workload.Arrival], progress func(sent int64)) (Report, error) {
	if err := ping(ctx, client); err != nil {
		return Report{}, err
	}
	r := &run{tally: newTally()}
	start := time.Now()
	paceErr := pace(ctx, arrivals, func(a workload.Arrival, due time.Time) {
		r.send(ctx, client, a, due)
		if progress != nil {
			progress(r.tally.sent)
		}
	})
	flushCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	flushErr := client.Flush(flushCtx)

	report, failed := r.finish(time.Since(start))
	switch {
	case paceErr != nil:
		return report, fmt.Errorf("sending: %w", paceErr)
	case failed != nil:
		return report, fmt.Errorf("%d of %d records failed, the first with: %w", report.Failed, report.Sent, failed)
	case flushErr != nil:
		return report, fmt.Errorf("waiting for acknowledgements: %w", flushErr)
	}
	return report, nil
}

// run is the state that sending and the client's callbacks share.
type run struct {
	mu    sync.Mutex
	tally *tally
	first error
}

func (r *run) send(ctx context.Context, client *kgo.Client, a workload.Arrival, due time.Time) {
	record, err := Record(a)
	r.mu.Lock()
	r.tally.sending(time.Since(due))
	r.mu.Unlock()
	if err != nil {
		r.acknowledged(due, err)
		return
	}
	// A record that is under way when the run is interrupted is still delivered.
	client.Produce(context.WithoutCancel(ctx), record, func(_ *kgo.Record, err error) { r.acknowledged(due, err) })
}

func (r *run) acknowledged(due time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.first == nil {
		r.first = err
	}
	r.tally.acknowledged(time.Since(due), err)
}

func (r *run) finish(took time.Duration) (Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally.report(took), r.first
}

// Record is an arrival as a record of the requests topic.
func Record(a workload.Arrival) (*kgo.Record, error) {
	value, err := a.Task.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding task %s: %w", a.Task.ID, err)
	}
	key := a.Task.SessionID()
	if key == "" {
		key = a.Task.ID
	}
	return &kgo.Record{Key: []byte(key), Value: value}, nil
}
