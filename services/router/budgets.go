package router

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// bookkeeper decides the Tasks of one partition whose session has a budget. It owns the partition's ledger: each Task is reserved or
// refused there, and that is read back, before its decision is published. So no other router, and no earlier or later self, can let
// the session spend the same twice. What has no budget goes past it, and waits for nothing.
//
// All that came since the last time is one batch: its records are written together and waited for once.
type bookkeeper struct {
	app  *App
	part *stream.Partition
	log  *slog.Logger

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	wake chan struct{}

	mu      sync.Mutex
	queue   []*queued
	inWork  []*queued
	waiting map[string]int // Tasks in the queue or in work, by id
	ended   []budget.Ended // to be settled, while there is a lease
	lease   *lease
	strays  []request // that belong on other partitions

	wakeStrays chan struct{}
}

// queued is a request that waits for its session's account.
type queued struct {
	request
	at    time.Time
	trace context.Context // of its record: the record's own changes while it is decided
	done  bool            // it has its answer; guarded by the keeper's lock
}

const (
	// batchMost bounds the Tasks of one read-back.
	batchMost = 500
	// settleEvery is how long an Outcome may wait for others to be settled with. It also waits for no more than the next batch.
	settleEvery = 250 * time.Millisecond
	// upkeepEvery is how often the log that a next owner has to read is kept short.
	upkeepEvery = time.Minute
	// goodbye bounds what is left to do for a partition that goes away.
	goodbye = 2 * time.Second
)

func newBookkeeper(a *App, part *stream.Partition) *bookkeeper {
	k := &bookkeeper{
		app: a, part: part, log: a.log.With(telemetry.KeyPartition, part.ID), wake: make(chan struct{}, 1), waiting: map[string]int{},
		wakeStrays: make(chan struct{}, 1),
	}
	k.ctx, k.stop = context.WithCancel(context.Background())
	k.wg.Go(k.run)
	k.wg.Go(k.expire)
	k.wg.Go(k.passStraysOn)
	return k
}

// close returns when nothing is done for the partition any more.
func (k *bookkeeper) close() {
	k.stop()
	k.wg.Wait()
}

// wants says whether a request has to go through here: a Task of a session with a budget, and the wish to cancel one that waits.
func (k *bookkeeper) wants(r request) bool {
	switch {
	case r.task != nil:
		return k.app.decider.policy.Load().Budgets.OfSession(*r.task) != nil
	case r.cancel != nil:
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.waiting[r.cancel.TaskID] > 0
	default:
		return false
	}
}

func (k *bookkeeper) take(r request) {
	k.mu.Lock()
	k.queue = append(k.queue, &queued{request: r, at: time.Now(), trace: r.rec.Context})
	k.waiting[r.taskID()]++
	k.mu.Unlock()
	k.nudge()
}

func (k *bookkeeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (r request) taskID() string {
	if r.cancel != nil {
		return r.cancel.TaskID
	}
	return r.task.ID
}

// settle notes the end of a Task. Without a lease it is left to the one who takes the next, who looks for the ends of all open Tasks.
func (k *bookkeeper) settle(e budget.Ended) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lease != nil {
		k.ended = append(k.ended, e)
	}
}

// run owns the ledger, whenever there is something to own it for, until the partition goes away.
func (k *bookkeeper) run() {
	for k.ctx.Err() == nil {
		if !k.needed() {
			select {
			case <-k.ctx.Done():
			case <-k.wake:
			case <-time.After(time.Second): // a new policy may have budgets
			}
			continue
		}
		l, err := k.open()
		if err != nil {
			return
		}
		err = k.serve(l)
		k.drop(l)
		if k.ctx.Err() != nil {
			return
		}
		// If we have missed that the partition moved, the group tells us within its session timeout. If it still says that the
		// partition is ours then, the other one was wrong, and the lease is taken back.
		k.app.metrics.leasesLost.Inc()
		k.log.Warn("somebody else took the partition's budgets; nothing more is admitted under this lease", "epoch", l.ledger.Epoch(), telemetry.Err(err))
		select {
		case <-k.ctx.Done():
		case <-time.After(k.app.cfg.Group.SessionTimeout):
		}
	}
}

func (k *bookkeeper) needed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.queue) > 0 || k.app.decider.policy.Load().Budgets.AgentSession != nil
}
