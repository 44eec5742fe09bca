package executor

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor/line"
	"github.com/pointsman/pointsman/services/executor/slots"
)

// caps are those that hold for all executors together.
func (c Config) caps() slots.Caps {
	caps := slots.Caps{Cluster: map[string]int{}, Queue: map[slots.Queue]int{}, Tenant: c.Caps.Tenants, AnyTenant: c.Caps.Tenant}
	for _, e := range c.Engines {
		if e.SharedSlots > 0 {
			caps.Cluster[e.Name] = e.SharedSlots
		}
		for name, q := range e.Queues {
			if q.Cap > 0 {
				caps.Queue[slots.Queue{Cluster: e.Name, Name: name}] = q.Cap
			}
		}
	}
	return caps
}

// followSlots folds the ledgers of all partitions into the table of slots. Without a cap nobody needs to know.
func (a *App) followSlots(ctx context.Context) error {
	for ctx.Err() == nil {
		tail := stream.NewTail(a.cfg.Kafka, a.deps, stream.TailConfig{
			Name: "executor-slots", Topics: []string{event.TopicAttemptState}, Since: time.Now().Add(-a.cfg.Caps.LookBack),
		})
		run, stop := context.WithCancel(ctx)
		go func() {
			select {
			case <-tail.Ready():
				a.slots.Ready()
				a.kick()
			case <-run.Done():
			}
		}()
		err := tail.Run(ctx, func(recs []*kgo.Record) {
			for _, rec := range recs {
				a.foldSlot(rec)
			}
			a.kick()
		})
		stop()
		if ctx.Err() != nil {
			return nil
		}
		a.log.WarnContext(ctx, "following the slots of other executors; starting anew", telemetry.KeyTopic, event.TopicAttemptState, telemetry.Err(err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

// foldSlot takes one record of a ledger. What can't be read holds no slot; the ledger's owner warns of it.
func (a *App) foldSlot(rec *kgo.Record) {
	if rec.Attrs.IsControl() || len(rec.Value) == 0 {
		return
	}
	r, err := ledger.Decode(rec.Value)
	if err != nil {
		return
	}
	switch r.Kind {
	case ledger.KindLease:
		a.slots.Leased(rec.Partition, r)
	case ledger.KindClaim:
		note, err := decodeNote[claimNote](r.Payload)
		if err != nil {
			return
		}
		a.slots.Claimed(rec.Partition, r, slots.Want{Attempt: r.Key, Cluster: note.Target.Cluster, Queue: note.Target.Queue, Tenant: note.Tenant})
	case ledger.KindEnd:
		a.slots.Ended(rec.Partition, r)
	case ledger.KindSubmitted: // its claim has said it all
	}
}

// expireEvery is how often leases that nobody has ended are looked for.
const expireEvery = time.Second

func (a *App) expireSlots(ctx context.Context) error {
	t := time.NewTicker(expireEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			if n := a.slots.Expire(now, a.cfg.Attempts.StopTimeout); n > 0 {
				a.log.WarnContext(ctx, "dropped slots of attempts that nobody has ended by their deadline", "slots", n)
				a.kick()
			}
		}
	}
}

// kick lets those who wait look again: what others hold has changed.
func (a *App) kick() {
	for _, c := range a.clusters {
		c.line.Kick()
	}
}

// ask is what the line asks before it grants the attempt a slot.
func (y *try) ask() *line.Ask {
	if y.p.app.slots == nil {
		return nil
	}
	w := slots.Want{Attempt: y.id, Cluster: y.target.Cluster, Queue: y.target.Queue, Tenant: y.t.first.Task.Tenant}
	return &line.Ask{Key: w.Queue + "\x00" + w.Tenant, Take: func() bool { return y.p.app.slots.Take(w) }}
}
