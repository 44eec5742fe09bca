package router

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

// profileSource answers for many fingerprints in one query.
type profileSource interface {
	Profiles(ctx context.Context, fingerprints []string, now time.Time) (map[profile.Key]profile.Profile, error)
}

// profiles is the router's view of history: an LRU in front of one query at a time, for whatever all partitions have asked
// for meanwhile, and a deadline. A query that takes 200 ms must not wait for history: what is not there in time is taken as it
// was known last, or is unknown, and the decision says so. The late answer serves the next one.
type profiles struct {
	source   profileSource
	deadline time.Duration
	ttl      time.Duration
	cache    *lru.Cache[string, *cached]
	log      *slog.Logger
	metrics  *metrics
	clock    func() time.Time
	warn     rate.Sometimes

	mu      sync.Mutex
	next    *ask // being gathered for the next query; nil when nobody has asked since the last began
	running bool
	began   time.Time // when the query that runs did
	warming bool
	closed  chan struct{}
	idle    sync.WaitGroup
}

// cached is what history said of a fingerprint, and when. (The library's expirable LRU keeps a goroutine that can't be ended.)
type cached struct {
	buckets buckets
	at      time.Time
	used    atomic.Int64 // when somebody wanted it last, in nanoseconds
}

// ask is one query to history, shared by everybody who wants something of it.
type ask struct {
	fingerprints map[string]bool
	done         chan struct{}
	err          error
}

// queryTime bounds a query that nobody waits for any more.
const queryTime = 10 * time.Second

// freshEnough is how old an answer may be to be used at once while history is asked again. It gets there only when history takes
// longer than usual: waiting for it then would hold up every batch for as long as that lasts.
const freshEnough = time.Minute

// warmFor is how long after its last use a fingerprint is asked for again and again, so that nobody has to wait for it, and
// warmMost how many of them are, those in use last.
const (
	warmFor  = time.Minute
	warmMost = 1000
)

// staleFor is how long an answer is used when history does not give a newer one.
const staleFor = 15 * time.Minute

func newProfiles(source profileSource, cfg ProfilesConfig, log *slog.Logger, m *metrics) (*profiles, error) {
	cache, err := lru.New[string, *cached](cfg.CacheSize)
	if err != nil {
		return nil, fmt.Errorf("making the profile cache: %w", err)
	}
	return &profiles{
		source: source, deadline: cfg.LookupDeadline, ttl: cfg.CacheTTL, cache: cache, log: log, metrics: m, clock: time.Now,
		warn: rate.Sometimes{First: 1, Interval: 10 * time.Second}, closed: make(chan struct{}),
	}, nil
}

// buckets is what history said of a fingerprint, as a query with parameters of each bucket is to be told of it: what is known
// of all buckets together, and what is known of its own. nil is an answer that was not had. The maps are shared.
type buckets map[string]profile.Lookup

func newBuckets(list []profile.Profile) buckets {
	out := buckets{"": {Asked: true, Found: map[profile.Key]profile.Profile{}}}
	for _, p := range list {
		if p.Key.Bucket == "" {
			out[""].Found[p.Key] = p
		}
	}
	for _, p := range list {
		if _, ok := out[p.Key.Bucket]; !ok {
			out[p.Key.Bucket] = profile.Lookup{Asked: true, Found: maps.Clone(out[""].Found)}
		}
		out[p.Key.Bucket].Found[p.Key] = p
	}
	return out
}

// answers are what history said, by fingerprint.
type answers map[string]buckets

// of is what a query is to be told.
func (a answers) of(fingerprint, bucket string) profile.Lookup {
	if own, ok := a[fingerprint][bucket]; ok {
		return own
	}
	return a[fingerprint][""]
}

// lookup returns what history says of each fingerprint. Those not in the cache, or too old there, are asked for together; only those
// that are not known, or have not been for a while, are waited for.
func (p *profiles) lookup(ctx context.Context, fingerprints []string) answers {
	return p.lookupWithin(ctx, fingerprints, p.deadline)
}

// lookupWithin is lookup with a deadline of the caller's.
func (p *profiles) lookupWithin(ctx context.Context, fingerprints []string, deadline time.Duration) answers {
	out := make(answers, len(fingerprints))
	var missing, old []string
	now := p.clock()
	for _, f := range fingerprints {
		if _, ok := out[f]; ok {
			continue
		}
		c, ok := p.cache.Get(f)
		if ok {
			c.used.Store(now.UnixNano())
		}
		if ok && now.Sub(c.at) < p.ttl {
			out[f] = c.buckets
			p.metrics.profileLookups.WithLabelValues("cache").Inc()
			continue
		}
		if ok && now.Sub(c.at) < freshEnough {
			out[f], old = c.buckets, append(old, f)
			p.metrics.profileLookups.WithLabelValues("late").Inc()
			continue
		}
		out[f] = nil
		missing = append(missing, f)
	}
	if len(old) > 0 {
		p.join(old)
	}
	if len(missing) == 0 {
		return out
	}
	from := "history"
	if err := p.await(ctx, missing, deadline); err != nil {
		from = "late"
		p.warn.Do(func() {
			p.log.WarnContext(ctx, "history gave no answer, deciding with what is known", "deadline", deadline, telemetry.Err(err))
		})
	}
	for _, f := range missing {
		c, ok := p.cache.Get(f)
		switch {
		case ok && p.clock().Sub(c.at) < staleFor:
			out[f] = c.buckets
			p.metrics.profileLookups.WithLabelValues(from).Inc()
		default:
			p.metrics.profileLookups.WithLabelValues("unknown").Inc()
		}
	}
	return out
}

// warm asks again for what was in use lately, all of it in one query each time, before it is too old. It ends when nothing was.
func (p *profiles) warm() {
	tick := time.NewTicker(p.ttl / 2)
	defer tick.Stop()
	for {
		select {
		case <-p.closed:
			return
		case <-tick.C:
		}
		now := p.clock()
		keys := p.cache.Keys() // in the order of their use
		var wanted []string
		for _, f := range keys[max(0, len(keys)-warmMost):] {
			if c, ok := p.cache.Peek(f); ok && now.Sub(time.Unix(0, c.used.Load())) < warmFor {
				wanted = append(wanted, f)
			}
		}
		p.mu.Lock()
		p.warming = len(wanted) > 0
		p.mu.Unlock()
		if len(wanted) == 0 {
			return
		}
		p.join(wanted)
	}
}

// await asks for the fingerprints and waits for the answer, at most for the deadline. While a query runs that has been waited for that
// long already nobody waits: history is slow then, and batch after batch would be.
func (p *profiles) await(ctx context.Context, fingerprints []string, deadline time.Duration) error {
	a := p.join(fingerprints)
	if p.slow(deadline) {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(deadline)
	defer timer.Stop()
	select {
	case <-a.done:
		return a.err
	case <-timer.C:
		return context.DeadlineExceeded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slow says that a query has run for longer than somebody would wait.
func (p *profiles) slow(deadline time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running && !p.began.IsZero() && p.clock().Sub(p.began) >= deadline
}

// join puts the fingerprints on the next query. One query runs at a time, so that a slow history gets fewer and larger
// queries, not more of them.
func (p *profiles) join(fingerprints []string) *ask {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = &ask{fingerprints: map[string]bool{}, done: make(chan struct{})}
	}
	for _, f := range fingerprints {
		p.next.fingerprints[f] = true
	}
	if !p.warming {
		p.warming = true
		p.idle.Go(p.warm)
	}
	if !p.running {
		p.running = true
		p.idle.Go(p.run)
	}
	return p.next
}

// run asks until nobody has joined while it asked.
func (p *profiles) run() {
	for {
		p.mu.Lock()
		a := p.next
		p.next = nil
		if a == nil {
			p.running, p.began = false, time.Time{}
			p.mu.Unlock()
			return
		}
		p.began = p.clock()
		p.mu.Unlock()
		a.err = p.query(a.fingerprints)
		close(a.done)
	}
}

func (p *profiles) query(wanted map[string]bool) error {
	list := make([]string, 0, len(wanted))
	for f := range wanted {
		list = append(list, f)
	}
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	start := p.clock()
	found, err := p.source.Profiles(ctx, list, start)
	p.metrics.profileSeconds.Observe(p.clock().Sub(start).Seconds())
	if err != nil {
		return err
	}
	byFingerprint := make(map[string][]profile.Profile, len(list))
	for _, prof := range found {
		byFingerprint[prof.Key.Fingerprint] = append(byFingerprint[prof.Key.Fingerprint], prof)
	}
	for _, f := range list {
		// A fingerprint without history is cached too: otherwise each new one would be asked for at every poll.
		c := &cached{buckets: newBuckets(byFingerprint[f]), at: start}
		c.used.Store(start.UnixNano())
		if old, ok := p.cache.Peek(f); ok {
			c.used.Store(old.used.Load())
		}
		p.cache.Add(f, c)
	}
	return nil
}

// close ends the warming and returns when no query runs any more.
func (p *profiles) close() {
	close(p.closed)
	p.idle.Wait()
}
