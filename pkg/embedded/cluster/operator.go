package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// stopTimeout bounds the stop of one pool.
const stopTimeout = 20 * time.Second

// operator keeps one group as its spec says: replicas above zero means that its runner runs.
type operator struct {
	store  *store
	group  Group
	resync time.Duration
	log    *slog.Logger

	started bool
}

func newOperator(st *store, g Group, resync time.Duration, log *slog.Logger) *operator {
	return &operator{store: st, group: g, resync: resync, log: log.With("group", g.UniqueID)}
}

// run reconciles until the context ends, and then stops the pool.
func (o *operator) run(ctx context.Context) {
	defer func() {
		if err := o.stop(context.WithoutCancel(ctx)); err != nil {
			o.log.WarnContext(ctx, "the pool may still run", "error", err)
		}
	}()
	retry := backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(15*time.Second),
		backoff.WithMaxElapsedTime(0))
	tick := time.NewTicker(o.resync)
	defer tick.Stop()
	for {
		want, _, changed := o.store.watch(o.group.UniqueID)
		var again <-chan time.Time
		if err := o.reconcile(ctx, want); err != nil && ctx.Err() == nil {
			wait := retry.NextBackOff()
			o.log.WarnContext(ctx, "reconciling the pool failed, trying again", "error", err, "after", wait)
			again = time.After(wait)
		} else {
			retry.Reset()
		}
		o.report()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		case <-tick.C:
		}
	}
}

func (o *operator) reconcile(ctx context.Context, want int32) error {
	switch {
	case want > 0 && !o.started:
		return o.start(ctx)
	case want <= 0 && o.started:
		return o.stop(ctx)
	default:
		return nil
	}
}

// start brings the pool up, unless it stops being wanted meanwhile.
func (o *operator) start(ctx context.Context) error {
	o.report() // the status follows the spec at once, long before anything runs
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go o.cancelUnwanted(ctx, cancel)
	delay := time.NewTimer(o.group.StartDelay)
	defer delay.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-delay.C:
	}
	if err := o.group.Runner.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // it was called off, which is no failure
		}
		return fmt.Errorf("starting pool %s: %w", o.group.UniqueID, err)
	}
	o.started = true
	o.log.InfoContext(ctx, "pool started")
	return nil
}

// cancelUnwanted ends the context of a start when the replicas go back to zero.
func (o *operator) cancelUnwanted(ctx context.Context, cancel context.CancelFunc) {
	for {
		want, _, changed := o.store.watch(o.group.UniqueID)
		if want <= 0 {
			cancel()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (o *operator) stop(ctx context.Context) error {
	if !o.started {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := o.group.Runner.Stop(ctx); err != nil {
		return fmt.Errorf("stopping pool %s: %w", o.group.UniqueID, err)
	}
	o.started = false
	o.log.InfoContext(ctx, "pool stopped")
	return nil
}

// available is how many of the wanted replicas really run: all or none, since a pool is one process here.
func (o *operator) available(want int32) int32 {
	if !o.started || want <= 0 {
		return 0
	}
	if live, ok := o.group.Runner.(interface{ Alive() bool }); ok && !live.Alive() {
		return 0
	}
	return want
}
