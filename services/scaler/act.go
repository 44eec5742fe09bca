package scaler

import (
	"context"
	"errors"
	"time"

	"github.com/pointsman/pointsman/pkg/capacity"
	"github.com/pointsman/pointsman/pkg/kube"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// raise writes a larger size. It never lowers: what somebody else has raised further stays.
func (p *pool) raise(ctx context.Context, plan capacity.Plan) {
	want := int32(plan.Replicas)
	got, err := p.control.Scale(ctx, p.cfg.ComputeGroup, func(g kube.Group) (int32, bool) {
		return max(want, g.Replicas()), true
	})
	p.written(ctx, capacity.Raise, got, err)
	if err != nil || !got.Wrote {
		return
	}
	now := time.Now()
	p.set(func(s *state) {
		s.lastRaise, s.draining = now, time.Time{}
		if got.From <= 0 {
			s.woken, s.wasOnce, s.ready, s.unsure = now, false, false, false
		}
	})
	p.climbNow()
}

// errWorkCame is why a pool that was to go stays.
var errWorkCame = errors.New("work came at the last moment")

// lower puts the pool to sleep, after a last look: the topics are read up to this moment, no Task wants the pool, the
// engine runs nothing, and nobody else has changed the size that was decided upon.
func (p *pool) lower(ctx context.Context, plan capacity.Plan) {
	from, err := p.stillIdle(ctx)
	if err != nil {
		p.log.InfoContext(ctx, "the pool stays", telemetry.KeyReason, err.Error())
		if errors.Is(err, errWorkCame) {
			p.set(func(s *state) { s.draining = time.Time{} })
		}
		return // without proof the drain goes on, and the next plan asks again
	}
	got, err := p.control.Scale(ctx, p.cfg.ComputeGroup, func(g kube.Group) (int32, bool) {
		return int32(plan.Replicas), g.Replicas() == from
	})
	p.written(ctx, capacity.Lower, got, err)
}

func (p *pool) stillIdle(ctx context.Context) (from int32, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.timing.Verify)
	defer cancel()
	if err := p.proof.Verify(ctx); err != nil {
		return 0, err
	}
	load, err := p.ladder.Load(ctx)
	if running, known := load.Values[signal.Running].Get(); err == nil && known && running > 0 {
		return 0, errWorkCame
	}
	if p.wishes.Open(p.cfg.Name) > 0 {
		return 0, errWorkCame
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.group.Replicas(), nil
}

// written notes what became of a write.
func (p *pool) written(ctx context.Context, action capacity.Action, got kube.Result, err error) {
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil:
		p.metrics.patchErrors.Inc()
		p.log.WarnContext(ctx, "the custom resource could not be changed, the next plan tries again", "action", string(action), telemetry.Err(err))
		return
	case got.Wrote:
		p.metrics.patch(action)
		p.log.InfoContext(ctx, "replicas changed", "action", string(action), "from", got.From, "to", got.To)
	}
	group, err := got.Cluster.Group(p.cfg.ComputeGroup)
	if err != nil {
		return // the next read says so
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(group, got.Cluster.Observed())
}

func (p *pool) logRead(ctx context.Context, g kube.Group, err error) {
	if err != nil {
		p.log.WarnContext(ctx, "the custom resource can't be read: the pool stays as it is", telemetry.Err(err))
		return
	}
	p.log.InfoContext(ctx, "the custom resource is read", "replicas", g.Replicas())
}
