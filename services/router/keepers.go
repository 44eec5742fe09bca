package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
)

// keepers are those of the partitions that this router has.
type keepers struct {
	mu    sync.Mutex
	parts int // of requests, 0 until it is known
	all   map[int32]*bookkeeper
}

func newKeepers() *keepers { return &keepers{all: map[int32]*bookkeeper{}} }

func (k *keepers) put(of *bookkeeper) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[of.part.ID] = of
}

func (k *keepers) remove(of *bookkeeper) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[of.part.ID] == of {
		delete(k.all, of.part.ID)
	}
}

func (k *keepers) list() []*bookkeeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]*bookkeeper, 0, len(k.all))
	for _, one := range k.all {
		out = append(out, one)
	}
	return out
}

// of finds the keeper of a session, nil if another router has it.
func (k *keepers) of(session string) *bookkeeper {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.parts == 0 {
		return nil
	}
	return k.all[stream.PartitionOf(event.TopicRequests, session, k.parts)]
}

// count is how many partitions the requests have.
func (k *keepers) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.parts
}

// sessions counts the accounts.
func (k *keepers) sessions() (n int) {
	for _, one := range k.list() {
		one.view(func(s *budget.Sessions) { n += s.Len() })
	}
	return n
}

// partitions is how many the requests have. The count is taken anew with each assignment: the group hands partitions out anew when
// there are more.
func (a *App) partitions(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	n, err := a.producer.Partitions(ctx, event.TopicRequests)
	if err != nil {
		return 0, err
	}
	a.keepers.mu.Lock()
	defer a.keepers.mu.Unlock()
	a.keepers.parts = n
	return n, nil
}

// headerPassedOn marks a request that a router has written to the partition of its session. It is not passed on again, whatever the
// number of partitions is by then.
const headerPassedOn = "pointsman-passed-on"

// belongsHere says whether a Task came on the partition that has its session's account. Producers put it there that key by the session
// and hash as Kafka's own clients do; one without a key, or with another hash, may not.
func (w *worker) belongsHere(r request) bool {
	return r.task == nil || stream.PartitionOf(event.TopicRequests, r.task.SessionID(), w.parts) == w.part.ID || passedOn(r.rec)
}

func passedOn(rec *kgo.Record) bool {
	return slices.ContainsFunc(rec.Headers, func(h kgo.RecordHeader) bool { return h.Key == headerPassedOn })
}

// stray takes a Task that belongs on another partition. It is passed on behind those that came before it, and nobody waits for that:
// the other partition may be away.
func (k *bookkeeper) stray(r request) {
	k.mu.Lock()
	k.strays = append(k.strays, r)
	k.mu.Unlock()
	select {
	case k.wakeStrays <- struct{}{}:
	default:
	}
}

func (k *bookkeeper) passStraysOn() {
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.wakeStrays:
		}
		k.mu.Lock()
		list := k.strays
		k.strays = nil
		k.mu.Unlock()
		for part := range slices.Chunk(list, batchMost) {
			if k.persist("passing tasks on", func() error { return k.passOn(k.ctx, part) }) != nil {
				return
			}
		}
	}
}

// passOn writes Tasks to the partition of their session, with the ids they have here: a repeat is the same Task.
func (k *bookkeeper) passOn(ctx context.Context, requests []request) error {
	out := make([]*kgo.Record, len(requests))
	for i, r := range requests {
		rec, err := k.again(r)
		if err != nil {
			return fmt.Errorf("passing task %s on: %w", r.task.ID, err)
		}
		out[i] = rec
	}
	err := k.app.producer.Write(ctx, out...)
	passed := len(out)
	if errors.Is(err, stream.ErrTooLarge) {
		passed, err = k.passOnSingly(ctx, requests, out)
	}
	if err != nil {
		return fmt.Errorf("passing tasks on to their sessions' partitions: %w", err)
	}
	k.app.metrics.passedOn.Add(float64(passed))
	for _, r := range requests {
		k.part.Done(r.rec)
	}
	return nil
}

// passOnSingly rejects those that are too large. A record may come compressed and then fit its topic better than it does from here. One
// that was written already is written again, which changes nothing.
func (k *bookkeeper) passOnSingly(ctx context.Context, requests []request, recs []*kgo.Record) (passed int, err error) {
	var refused []answer
	for i, rec := range recs {
		err := k.app.producer.Write(ctx, rec)
		switch {
		case err == nil:
			passed++
		case errors.Is(err, stream.ErrTooLarge):
			t := requests[i].task
			d := k.app.rejectInvalid(invalidTask{task: bare(*t), message: tooLargeToRoute}, time.Now().UTC())
			d.TaskDigest = t.Digest()
			refused = append(refused, answer{rec: requests[i].rec, decision: d})
		default:
			return passed, err
		}
	}
	return passed, k.app.publish(ctx, refused)
}

// again is the record of a request under its session's key.
func (k *bookkeeper) again(r request) (*kgo.Record, error) {
	data, err := event.Marshal(*r.task)
	if err != nil {
		return nil, err
	}
	rec, err := k.app.cfg.Kafka.Encode(stream.Message{
		Topic: event.TopicRequests, Key: r.task.SessionID(), Type: event.QueryRequested, ID: r.task.ID, Subject: r.task.ID,
		Time: *r.task.SubmittedAt, Data: data, Headers: []kgo.RecordHeader{{Key: headerPassedOn, Value: []byte("1")}},
	})
	if err == nil {
		rec.Context = r.rec.Context
	}
	return rec, err
}
