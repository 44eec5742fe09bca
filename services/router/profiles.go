package router

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// profileSource answers for many fingerprints in one query.
type profileSource interface {
	Profiles(ctx context.Context, fingerprints []string, now time.Time) (map[profile.Key]profile.Profile, error)
}

// profiles is the router's view of history: an LRU in front of one batch look-up per poll, with a deadline. A query that
// takes 200 ms must not wait for history: what is not there in time is unknown, and the decision says so.
type profiles struct {
	source   profileSource
	deadline time.Duration
	ttl      time.Duration
	cache    *lru.Cache[string, cached]
	log      *slog.Logger
	metrics  *metrics
	clock    func() time.Time
}

// cached is what history said of a fingerprint, and when. (The library's expirable LRU keeps a goroutine that can't be ended.)
type cached struct {
	list []profile.Profile
	at   time.Time
}

func newProfiles(source profileSource, cfg ProfilesConfig, log *slog.Logger, m *metrics) (*profiles, error) {
	cache, err := lru.New[string, cached](cfg.CacheSize)
	if err != nil {
		return nil, fmt.Errorf("making the profile cache: %w", err)
	}
	return &profiles{source: source, deadline: cfg.LookupDeadline, ttl: cfg.CacheTTL, cache: cache, log: log, metrics: m, clock: time.Now}, nil
}

// lookup returns what history says of each fingerprint. Those not in the cache are asked for together, in one query.
func (p *profiles) lookup(ctx context.Context, fingerprints []string) map[string]profile.Lookup {
	out := make(map[string]profile.Lookup, len(fingerprints))
	var missing []string
	for _, f := range fingerprints {
		if _, ok := out[f]; ok {
			continue
		}
		if c, ok := p.cache.Get(f); ok && p.clock().Sub(c.at) < p.ttl {
			out[f] = toLookup(c.list)
			p.metrics.profileLookups.WithLabelValues("cache").Inc()
			continue
		}
		out[f] = profile.Lookup{}
		missing = append(missing, f)
	}
	if len(missing) == 0 || p.source == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, p.deadline)
	defer cancel()
	start := p.clock()
	found, err := p.source.Profiles(ctx, missing, start)
	p.metrics.profileSeconds.Observe(p.clock().Sub(start).Seconds())
	if err != nil {
		p.metrics.profileLookups.WithLabelValues("unavailable").Add(float64(len(missing)))
		p.log.WarnContext(ctx, "history did not answer, deciding without it", "fingerprints", len(missing), telemetry.Err(err))
		return out
	}
	byFingerprint := make(map[string][]profile.Profile, len(missing))
	for _, prof := range found {
		byFingerprint[prof.Key.Fingerprint] = append(byFingerprint[prof.Key.Fingerprint], prof)
	}
	for _, f := range missing {
		// A fingerprint without history is cached too: otherwise each new one would be asked for at every poll.
		p.cache.Add(f, cached{byFingerprint[f], start})
		out[f] = toLookup(byFingerprint[f])
	}
	p.metrics.profileLookups.WithLabelValues("history").Add(float64(len(missing)))
	return out
}

func toLookup(list []profile.Profile) profile.Lookup {
	l := profile.Lookup{Asked: true, Found: make(map[profile.Key]profile.Profile, len(list))}
	for _, prof := range list {
		l.Found[prof.Key] = prof
	}
	return l
}
