package router

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/profile"
)

// lateBy is how far behind its deadline a Task waits for a ledger that is ours: it may be answered in this moment.
const lateBy = 2 * time.Second

// expire answers Tasks whose deadline passes while the ledger is not ours, or takes no records: nobody can run them any more, whatever
// it says. A reservation that stands all the same is given back by their Outcome.
func (k *bookkeeper) expire() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
		}
		late := k.late(time.Now())
		if len(late) == 0 {
			continue
		}
		out := make([]answer, len(late))
		for i, q := range late {
			rec := &kgo.Record{Context: q.trace} // whoever has it in work may write to its own
			if q.cancel != nil {
				out[i] = answer{rec: rec, decision: passCancel(*q.cancel, time.Now().UTC())}
				continue
			}
			out[i] = k.app.traced(rec, subject{task: *q.task, attempt: 1}, profile.Lookup{}, nil)
		}
		if k.persist("publishing decisions", func() error { return k.app.publish(k.ctx, out) }) == nil {
			k.finish(late)
		}
	}
}

// late takes what is past its deadline out of the queue, and gives what is in work and well past it.
func (k *bookkeeper) late(now time.Time) (late []*queued) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lease != nil {
		now = now.Add(-lateBy)
	}
	def := k.app.decider.policy.Load().Defaults.Timeout
	gone := map[string]bool{}
	isOver := func(q *queued) bool {
		over := q.cancel != nil && gone[q.cancel.TaskID]
		if q.task != nil {
			at, ok := q.task.Deadline(def)
			over = ok && now.After(at)
			gone[q.task.ID] = gone[q.task.ID] || over
		}
		if over && !q.done {
			late = append(late, q)
		}
		return over
	}
	for _, q := range k.inWork {
		isOver(q)
	}
	k.queue = slices.DeleteFunc(k.queue, isOver)
	return late
}

// unanswered leaves out what was answered because its deadline has passed.
func (k *bookkeeper) unanswered(batch []*queued) []*queued {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(batch), func(q *queued) bool { return q.done })
}

// wanted leaves out the answers to what has been answered meanwhile.
func (k *bookkeeper) wanted(batch []*queued, answers []answer) []answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]answer, 0, len(answers))
	for i, q := range batch {
		if !q.done {
			out = append(out, answers[i])
		}
	}
	return out
}
