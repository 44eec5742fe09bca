package executor

import (
	"context"
	"maps"
	"reflect"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor/line"
	"github.com/pointsman/pointsman/services/executor/slotlog"
	"github.com/pointsman/pointsman/services/executor/slots"
)

// caps are those that hold for all executors together.
func (c Config) caps() event.Caps {
	caps := event.Caps{Tenant: c.Caps.Tenant}
	if len(c.Caps.Tenants) > 0 {
		caps.Tenants = maps.Clone(c.Caps.Tenants)
	}
	for _, e := range c.Engines {
		if e.SharedSlots > 0 {
			if caps.Clusters == nil {
				caps.Clusters = map[string]int{}
			}
			caps.Clusters[e.Name] = e.SharedSlots
		}
		for name, q := range e.Queues {
			if q.Cap <= 0 {
				continue
			}
			if caps.Queues == nil {
				caps.Queues = map[string]map[string]int{}
			}
			if caps.Queues[e.Name] == nil {
				caps.Queues[e.Name] = map[string]int{}
			}
			caps.Queues[e.Name][name] = q.Cap
		}
	}
	return caps
}

// part is the attempt's partition under the lease that it is made under.
func (y *try) part() slotlog.Part { return slotlog.Part{ID: y.p.part.ID, Epoch: y.t.ledger.Epoch()} }

// want is what the attempt needs a slot of.
func (y *try) want() event.SlotWant {
	return event.SlotWant{
		AttemptID: y.id, Cluster: y.target.Cluster, Queue: y.target.Queue, Tenant: y.t.first.Task.Tenant,
		Priority: y.t.first.Task.Priority, Since: y.t.rec.Timestamp.UTC(), Expires: y.p.app.slotExpires(y.t.deadline()),
	}
}

// slotExpires is when the slot of an attempt that nobody ends comes back: its engine was given no longer than its Task's deadline, and
// some time to stop.
func (a *App) slotExpires(deadline time.Time) time.Time {
	return deadline.Add(a.cfg.Attempts.StopTimeout + a.cfg.Attempts.GuardLeave).UTC()
}

// atEngines are the attempts that an earlier owner of a partition has claimed and not ended.
func (a *App) atEngines(open []ledger.Attempt) []event.SlotWant {
	wants := make([]event.SlotWant, 0, len(open))
	for _, o := range open {
		note, err := decodeNote[claimNote](o.Claim.Payload)
		if err != nil { // whoever goes on with the attempt says so
			continue
		}
		wants = append(wants, event.SlotWant{
			AttemptID: o.Key, Cluster: note.Target.Cluster, Queue: note.Target.Queue, Tenant: note.Tenant,
			Since: o.Claim.At.UTC(), Expires: a.slotExpires(o.Deadline),
		})
	}
	return wants
}

// ask is what the line needs to get the attempt a slot of those that all executors share.
func (y *try) ask() *line.Ask {
	s, part, w := y.p.app.slots, y.part(), y.want()
	return &line.Ask{
		Key:    w.Queue + "\x00" + w.Tenant,
		Needed: func() bool { return s.Needed(w) },
		Send: func(p *line.Place) {
			s.Ask(part, w, func(held bool) {
				if held {
					p.Answer()
				} else {
					p.Waits()
				}
			})
		},
		Return: func() { s.Free(w.AttemptID) },
	}
}

// watchCaps takes over caps and slots that have changed in the configuration. One with faults changes nothing, and one counts when it
// was found the same twice: half a file may be a configuration without caps.
func (a *App) watchCaps(ctx context.Context) error {
	ticker := time.NewTicker(a.cfg.Caps.Reload)
	defer ticker.Stop()
	caps, broken := a.cfg.caps(), ""
	var last Config
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		cfg, err := a.again()
		if err != nil {
			if err.Error() != broken {
				a.log.ErrorContext(ctx, "the changed configuration is refused; caps and slots stay as they are", telemetry.Err(err))
			}
			broken = err.Error()
			continue
		}
		broken = ""
		if !reflect.DeepEqual(cfg, last) {
			last = cfg
			continue
		}
		if now := cfg.caps(); !slots.Same(now, caps) {
			caps = now
			a.log.InfoContext(ctx, "caps have changed", "caps", slots.Text(caps))
			a.slots.SetCaps(caps)
		}
		a.resize(ctx, cfg)
	}
}

// resize takes over how many attempts this process runs on each cluster. Its clients were made for as many as it had at its start.
func (a *App) resize(ctx context.Context, cfg Config) {
	for _, e := range cfg.Engines {
		c := a.clusters[e.Name]
		if c == nil {
			continue
		}
		want := min(e.Slots, c.cfg.Slots)
		if now, _, _ := c.line.Load(); now == want {
			continue
		}
		a.log.InfoContext(ctx, "slots of a cluster have changed", telemetry.KeyCluster, e.Name, "slots", want, "configured", e.Slots)
		c.line.Resize(want)
	}
}
