package router

import (
	"context"
	"crypto/sha256"
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

// watchPolicy takes a changed policy file over. A file with faults changes nothing: the policy in force stays, and the faults
// are logged once for each version of the file.
func (a *App) watchPolicy(ctx context.Context) error {
	ticker := time.NewTicker(a.cfg.Policy.Reload)
	defer ticker.Stop()
	seen := sum(a.cfg.Policy.File)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := sum(a.cfg.Policy.File)
		if now == seen {
			continue
		}
		seen = now
		p, err := readPolicy(a.cfg.Policy)
		if err != nil {
			a.metrics.policyReloads.WithLabelValues("refused").Inc()
			a.log.ErrorContext(ctx, "the changed policy is refused, the old one stays in force", telemetry.Err(err))
			continue
		}
		a.decider.policy.Store(p)
		a.metrics.policyReloads.WithLabelValues("taken").Inc()
		a.log.InfoContext(ctx, "policy reloaded", "policy", p.Hash)
	}
}

// sum identifies a version of a file; a file that can't be read has one of its own.
func sum(file string) [sha256.Size]byte {
	text, err := os.ReadFile(file)
	if err != nil {
		return sha256.Sum256([]byte("unreadable: " + err.Error()))
	}
	return sha256.Sum256(text)
}
