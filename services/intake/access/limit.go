package access

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pointsman/pointsman/pkg/config"
)

// LimitConfig is how often a tenant may call.
type LimitConfig struct {
	PerSecond float64 `yaml:"perSecond" doc:"Requests a second that a tenant may make in the long run; 0 sets no limit."`
	Burst     int     `yaml:"burst" doc:"Requests that a tenant may make at once."`
}

// Validate reports every fault.
func (c LimitConfig) Validate() error {
	switch {
	case c.PerSecond < 0:
		return config.Invalid("perSecond", "must not be negative, is %v", c.PerSecond)
	case c.PerSecond > 0 && c.Burst < 1:
		return config.Invalid("burst", "must be at least 1, is %d", c.Burst)
	}
	return nil
}

// maxTenants bounds the memory of the limiter: callers in mode none make tenant names up.
const maxTenants = 10_000

// Limiter limits each tenant by itself.
type Limiter struct {
	cfg      LimitConfig
	limiters *lru.Cache[string, *rate.Limiter]
}

// NewLimiter makes a limiter.
func NewLimiter(c LimitConfig) (*Limiter, error) {
	cache, err := lru.New[string, *rate.Limiter](maxTenants)
	if err != nil {
		return nil, err
	}
	return &Limiter{cfg: c, limiters: cache}, nil
}

// Allow takes one request of a tenant, or says when the next can be taken.
func (l *Limiter) Allow(tenant string, now time.Time) (ok bool, after time.Duration) {
	if l.cfg.PerSecond == 0 {
		return true, 0
	}
	fresh := rate.NewLimiter(rate.Limit(l.cfg.PerSecond), l.cfg.Burst)
	limiter, found, _ := l.limiters.PeekOrAdd(tenant, fresh)
	if !found {
		limiter = fresh
	} else {
		l.limiters.Get(tenant) // marks it as used
	}
	r := limiter.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return false, wait
	}
	return true, 0
}
