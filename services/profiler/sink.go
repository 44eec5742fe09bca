package profiler

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"

	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/stream"
)

// held is a record that was read and is not stored yet.
type held struct {
	rec  *kgo.Record
	row  any // nil when it has none
	size int64
}

// sink gathers the records of one topic, of all its partitions that are ours, until there are enough of them or they have waited
// long enough. Its buffers are keyed by partition, and a partition's are in the order of the log: whatever is tried again is the
// same records, never a second copy.
type sink struct {
	kind
	rows  int // of one insert, at which nobody waits any longer
	share int // records of one partition, at which it does not either: waiting on would only fill it up and pause it
	every time.Duration

	mu      sync.Mutex
	feeds   []*feed
	waiting int
	full    bool          // a partition has its share
	oldest  time.Time     // since when the first of them waits
	wake    chan struct{} // something waits that did not, or enough do
}

// newSink makes a sink. span is how much of a partition may be unfinished before it is paused.
func newSink(k kind, cfg SinkConfig, span int) *sink {
	s := &sink{kind: k, rows: cfg.BatchRows, share: max(1, span/4), every: cfg.FlushEvery, wake: make(chan struct{}, 1)}
	if k.patient {
		s.every *= patience
	}
	return s
}

// patience is how much longer than other rows those may wait that only dashboards read.
const patience = 5

// feed is one partition of a sink's topic.
type feed struct {
	app     *App
	sink    *sink
	part    *stream.Partition
	topicID string
	pending []held // guarded by the sink's mu
	closed  bool
}

func (s *sink) open(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds = append(s.feeds, f)
}

// Process reads records and hands them to the sink. It blocks when too much is in memory: the partition is paused then, and the
// group does not mind.
func (f *feed) Process(ctx context.Context, recs []*kgo.Record) error {
	for _, rec := range recs {
		h := held{rec: rec, size: f.app.memory.size(rec)}
		if err := f.app.memory.take(ctx, h.size); err != nil {
			return nil // the partition goes; what is not handed over is read again
		}
		row, others, err := f.sink.read(rec, time.Now().UTC())
		if err != nil {
			if err := f.app.unusable(ctx, f.sink.topic, rec, asFault(err), others); err != nil {
				f.app.memory.give(h.size)
				return nil
			}
		}
		h.row = row
		f.sink.add(f, h)
	}
	return nil
}

// Close forgets what is not stored: the next owner reads it again.
func (f *feed) Close() {
	f.sink.mu.Lock()
	defer f.sink.mu.Unlock()
	f.closed = true
	for _, h := range f.pending {
		f.app.memory.give(h.size)
	}
	f.sink.waiting -= len(f.pending)
	f.pending = nil
	for i, other := range f.sink.feeds {
		if other == f {
			f.sink.feeds = append(f.sink.feeds[:i:i], f.sink.feeds[i+1:]...)
			break
		}
	}
}

func (s *sink) add(f *feed, h held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.pending = append(f.pending, h)
	s.waiting++
	if s.waiting == 1 {
		s.oldest = time.Now()
	}
	turn := s.waiting == 1 || s.waiting == s.rows
	if len(f.pending) == s.share {
		s.full, turn = true, true
	}
	if turn {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// due says how long the sink may still wait for more, or false when nothing waits.
func (s *sink) due(now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waiting == 0:
		return 0, false
	case s.waiting >= s.rows, s.full:
		return 0, true
	default:
		return max(0, s.every-now.Sub(s.oldest)), true
	}
}

// cut is what is stored together: for each partition a run of its records.
type cut struct {
	runs []run
}

type run struct {
	feed *feed
	recs []held
}

// take cuts what waits, at most the rows of one insert, the partitions in turn.
func (s *sink) take() cut {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c cut
	room := s.rows
	s.full = false
	for i := range s.feeds {
		f := s.feeds[i]
		n := min(room, len(f.pending))
		if n == 0 {
			continue
		}
		c.runs = append(c.runs, run{f, f.pending[:n:n]})
		f.pending = f.pending[n:]
		s.full = s.full || len(f.pending) >= s.share
		room -= n
		s.waiting -= n
	}
	if len(s.feeds) > 1 { // the first is not always the one that fills the insert
		s.feeds = append(s.feeds[1:], s.feeds[0])
	}
	s.oldest = time.Now()
	return c
}

// batch is the cut as the history takes it.
func (c cut) batch(k kind) history.Batch {
	var rows []any
	var ranges []history.Range
	for _, r := range c.runs {
		ranges = append(ranges, history.Range{
			TopicID: r.feed.topicID, Partition: r.feed.part.ID, First: r.recs[0].rec.Offset, Last: r.recs[len(r.recs)-1].rec.Offset,
		})
		for _, h := range r.recs {
			if h.row != nil {
				rows = append(rows, h.row)
			}
		}
	}
	return history.Batch{Rows: k.rows(rows), Ranges: ranges}
}

// find is the record that a row came from.
func (c cut) find(partition int32, offset uint64) *kgo.Record {
	for _, r := range c.runs {
		if r.feed.part.ID != partition {
			continue
		}
		for _, h := range r.recs {
			if uint64(h.rec.Offset) == offset {
				return h.rec
			}
		}
	}
	return nil
}

// memory bounds the records that are held. It counts their bytes on the wire, and what a decoded row takes beside them.
type memory struct {
	limit int64
	sem   *semaphore.Weighted
	gauge interface{ Add(float64) }
}

func newMemory(limit int64, gauge interface{ Add(float64) }) *memory {
	return &memory{limit: limit, sem: semaphore.NewWeighted(limit), gauge: gauge}
}

// perRecord is what a record takes besides its bytes, twice over: as it came and as a row.
const perRecord = 1 << 10

func (m *memory) size(rec *kgo.Record) int64 {
	return min(m.limit, int64(2*(len(rec.Key)+len(rec.Value))+perRecord))
}

func (m *memory) take(ctx context.Context, n int64) error {
	if err := m.sem.Acquire(ctx, n); err != nil {
		return err
	}
	m.gauge.Add(float64(n))
	return nil
}

func (m *memory) give(n int64) {
	m.sem.Release(n)
	m.gauge.Add(-float64(n))
}
