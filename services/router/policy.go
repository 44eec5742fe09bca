package router

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// readPolicy reads and compiles the policy of the configuration.
func readPolicy(cfg PolicyConfig) (*policy.Policy, error) {
	if cfg.File == "" {
		p, err := policy.Load("built-in policy", policies.Default)
		if err != nil {
			return nil, fmt.Errorf("loading the built-in policy: %w", err)
		}
		return p, nil
	}
	text, err := os.ReadFile(cfg.File)
	if err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	p, err := policy.Load(cfg.File, text)
	if err != nil {
		return nil, fmt.Errorf("the policy has faults:\n%w", err)
	}
	return p, nil
}

// takePolicy puts a policy in force. Decisions that have begun end with the one they began with.
func (a *App) takePolicy(ctx context.Context, p *policy.Policy) {
	a.metrics.latches.Reset()
	a.decider.latches.use(p, &a.decider.policy)
	a.metrics.policyRefused.Set(0)
	for _, w := range p.Warnings {
		a.log.WarnContext(ctx, "policy", "warning", w.String())
	}
}

// latchChanged counts and logs a latch that goes on, off, or is not known any more.
func (a *App) latchChanged(name string, now policy.Latch) {
	value, state := 0.0, "off"
	switch {
	case !now.Known:
		value, state = -1, "unknown"
	case now.On:
		value, state = 1, "on"
	}
	a.metrics.latches.WithLabelValues(name).Set(value)
	if !now.At.IsZero() {
		a.log.Info("latch", "latch", name, "state", state, "value", now.Value, "observed_at", now.At)
	}
}

// watchPolicy takes a changed policy file over. A file with faults changes nothing: the policy in force stays, and the faults
// are logged once for each version of the file.
func (a *App) watchPolicy(ctx context.Context) error {
	ticker := time.NewTicker(a.cfg.Policy.Reload)
	defer ticker.Stop()
	seen := a.decider.policy.Load().Hash
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		seen = a.reloadPolicy(ctx, seen)
	}
}

// reloadPolicy looks at the policy file once. seen is the version that was looked at last; it returns the one it has seen.
func (a *App) reloadPolicy(ctx context.Context, seen string) string {
	text, err := os.ReadFile(a.cfg.Policy.File)
	now := "unreadable"
	if err == nil {
		now = policy.Hash(text)
	}
	if now == seen {
		return seen
	}
	if inForce := a.decider.policy.Load(); now == inForce.Hash {
		a.metrics.policyRefused.Set(0)
		a.log.InfoContext(ctx, "the policy file is again what is in force", "policy", inForce.Hash)
		return now
	}
	start := time.Now()
	var p *policy.Policy
	if err == nil {
		p, err = policy.Load(a.cfg.Policy.File, text)
	}
	if err != nil {
		a.metrics.policyReloads.WithLabelValues("refused").Inc()
		a.metrics.policyRefused.Set(1)
		a.log.ErrorContext(ctx, "the changed policy is refused, the old one stays in force", telemetry.Err(err))
		return now
	}
	a.takePolicy(ctx, p)
	a.metrics.policyReloads.WithLabelValues("taken").Inc()
	a.log.InfoContext(ctx, "policy reloaded", "policy", p.Hash, "pools", len(p.Pools), "rules", len(p.Rules), "took", time.Since(start))
	return now
}
