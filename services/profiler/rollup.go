package profiler

import (
	"context"
	"time"

	"github.com/pointsman/pointsman/pkg/telemetry"
)

// dirty wakes the rollups.
func (a *App) dirty() {
	select {
	case a.wakeRollups <- struct{}{}:
	default:
	}
}

// rollups computes dirty hours anew. Which ones are dirty is read from the history, where every profiler marks them, so that nothing
// is forgotten when one dies. Profiles read the newest rows themselves: a recompute that is late makes no profile wrong.
func (a *App) rollups(ctx context.Context) error {
	reconcile := time.NewTicker(a.cfg.Rollups.Reconcile)
	defer reconcile.Stop()
	a.dirty() // what a profiler before us did not get to
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.wakeRollups:
		case <-reconcile.C:
		}
		start := time.Now()
		if err := a.rollUp(ctx); err != nil && ctx.Err() == nil {
			a.metrics.rollupErrors.Inc()
			a.log.WarnContext(ctx, "rolling up", telemetry.Err(err))
			a.dirty()
		}
		// A recompute reads whole hours: it gets a tenth of the time at most, however often an hour is written to.
		pause := max(a.cfg.Rollups.Every, 9*time.Since(start))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (a *App) rollUp(ctx context.Context) error {
	start := time.Now()
	hours, err := a.writer.DirtyHours(ctx)
	if err != nil {
		return err
	}
	if len(hours) > 0 {
		if err := a.writer.Rollup(ctx, hours); err != nil {
			return err
		}
		a.metrics.rollupSeconds.Observe(time.Since(start).Seconds())
	}
	a.metrics.rolledUpAt.Set(float64(start.Unix()))
	return nil
}
