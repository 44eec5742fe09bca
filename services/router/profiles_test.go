package router

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/cache"
	"github.com/pointsman/pointsman/pkg/profile"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

// oracle is a history that takes its time, and records what it was asked.
type oracle struct {
	mu    sync.Mutex
	takes time.Duration
	calls [][]string
	err   error
}

func (o *oracle) Profiles(ctx context.Context, fingerprints []string, _ time.Time) (map[profile.Key]profile.Profile, error) {
	o.mu.Lock()
	o.calls = append(o.calls, fingerprints)
	err, takes := o.err, o.takes
	o.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(takes):
	}
	if err != nil {
		return nil, err
	}
	k := profile.Key{Fingerprint: "known", Engine: "e", Cluster: "c"}
	return map[profile.Key]profile.Profile{k: {Key: k, Runs: 3}}, nil
}

func (o *oracle) asked() [][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

func newTestProfiles(t *testing.T, o *oracle) *profiles {
	p, err := newProfiles(o, ProfilesConfig{CacheSize: 10, CacheTTL: time.Minute, LookupDeadline: 100 * time.Millisecond},
		slog.New(slog.DiscardHandler), newMetrics(nil))
	require.NoError(t, err)
	return p
}

func TestProfilesAreAskedForTogetherAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{}
		p := newTestProfiles(t, o)
		got := p.lookup(t.Context(), []string{"known", "new", "known"})
		require.Len(t, o.asked(), 1)
		require.ElementsMatch(t, []string{"known", "new"}, o.asked()[0])
		require.Len(t, got.of("known", "").Found, 1)
		require.True(t, got.of("new", "").Asked, "no history is an answer")
		require.Empty(t, got.of("new", "").Found)

		p.lookup(t.Context(), []string{"known", "new", "third"})
		require.Equal(t, []string{"third"}, o.asked()[1], "what is cached is not asked for, not even when it has no history")
		p.close()
	})
}

func TestSlowHistoryHoldsNobodyUpAndServesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 300 * time.Millisecond}
		p := newTestProfiles(t, o)
		start := time.Now()
		got := p.lookup(t.Context(), []string{"known"})
		require.Equal(t, 100*time.Millisecond, time.Since(start), "the deadline")
		require.False(t, got.of("known", "").Asked, "unknown is not the same as no history")

		time.Sleep(time.Second)
		require.Len(t, p.lookup(t.Context(), []string{"known"}).of("known", "").Found, 1, "the late answer")
		require.Len(t, o.asked(), 1)
		p.close()
	})
}

func TestOneQueryAtATimeForAllPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 40 * time.Millisecond}
		p := newTestProfiles(t, o)
		var wg sync.WaitGroup
		for _, f := range []string{"a", "b", "c", "d"} {
			wg.Go(func() { require.True(t, p.lookup(t.Context(), []string{f}).of(f, "").Asked) })
			if f == "a" {
				synctest.Wait() // its query is on its way
			}
		}
		wg.Wait()
		require.Len(t, o.asked(), 2, "the first alone, the others together behind it")
		p.close()
	})
}

func TestHistoryThatIsDownLeavesWhatWasKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{}
		p := newTestProfiles(t, o)
		p.lookup(t.Context(), []string{"known"})
		o.mu.Lock()
		o.err = errors.New("down")
		o.mu.Unlock()
		time.Sleep(2 * time.Minute)
		got := p.lookup(t.Context(), []string{"known", "other"})
		require.Len(t, got.of("known", "").Found, 1, "older than its time, but better than nothing")
		require.False(t, got.of("other", "").Asked)
		time.Sleep(time.Hour)
		require.False(t, p.lookup(t.Context(), []string{"known"}).of("known", "").Asked, "too old to be believed")
		p.close()
	})
}

func TestNobodyWaitsForWhatWasInUseLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 50 * time.Millisecond}
		p := newTestProfiles(t, o)
		p.ttl = 2 * time.Second
		p.lookup(t.Context(), []string{"known", "new"})
		for range 10 {
			time.Sleep(20 * time.Second)
			start := time.Now()
			require.Len(t, p.lookup(t.Context(), []string{"known"}).of("known", "").Found, 1)
			require.Zero(t, time.Since(start), "however seldom, as long as it is within the minute")
		}
		calls := len(o.asked())
		require.InDelta(t, 200, calls, 5, "one query a second, for all of them")
		require.ElementsMatch(t, []string{"known", "new"}, o.asked()[30])
		require.Equal(t, []string{"known"}, o.asked()[calls-1], "what nobody wants any more is not asked for")

		time.Sleep(time.Hour)
		require.InDelta(t, calls+60, len(o.asked()), 2, "nor is anything when nobody wants anything")
		start := time.Now()
		p.lookup(t.Context(), []string{"known"})
		require.Equal(t, 50*time.Millisecond, time.Since(start), "after that somebody has to wait again")
		p.close()
	})
}

func TestASlowHistoryIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 5 * time.Second}
		p := newTestProfiles(t, o)
		p.lookup(t.Context(), []string{"known"})
		start := time.Now()
		for range 20 {
			require.False(t, p.lookup(t.Context(), []string{"known", "other"}).of("known", "").Asked)
		}
		require.Zero(t, time.Since(start), "its first batch has waited; those behind it do not")
		time.Sleep(5 * time.Second)
		require.Len(t, p.lookup(t.Context(), []string{"known"}).of("known", "").Found, 1, "the late answer")
		p.close()
	})
}

func TestNobodyWaitsForASlowHistoryWhenSomethingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 10 * time.Millisecond}
		p := newTestProfiles(t, o)
		p.ttl = 2 * time.Second
		p.lookup(t.Context(), []string{"known"})
		o.mu.Lock()
		o.takes = 20 * time.Second
		o.mu.Unlock()
		for range 15 {
			time.Sleep(3 * time.Second) // the next answers are always overdue
			start := time.Now()
			require.Len(t, p.lookup(t.Context(), []string{"known"}).of("known", "").Found, 1)
			require.Zero(t, time.Since(start))
		}
		time.Sleep(queryTime)
		p.close()
	})
}

func TestOnlyTheLastThousandAreKeptWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{}
		p, err := newProfiles(o, ProfilesConfig{CacheSize: 5000, CacheTTL: 2 * time.Second, LookupDeadline: time.Second}, slog.New(slog.DiscardHandler), newMetrics(nil))
		require.NoError(t, err)
		var all []string
		for i := range 3000 {
			all = append(all, strconv.Itoa(i))
		}
		p.lookup(t.Context(), all)
		time.Sleep(1500 * time.Millisecond)
		require.Len(t, o.asked(), 2)
		require.Len(t, o.asked()[1], warmMost)
		p.close()
	})
}

func TestAQueryIsToldOfItsOwnBucketAndOfAll(t *testing.T) {
	key := func(cluster, bucket string) profile.Key {
		return profile.Key{Fingerprint: "f", Engine: "e", Cluster: cluster, Bucket: bucket}
	}
	var list []profile.Profile
	for i, k := range []profile.Key{key("c", ""), key("c", "r17"), key("d", ""), key("d", "r28"), key("c", "r28")} {
		list = append(list, profile.Profile{Key: k, Runs: int64(i)})
	}
	a := answers{"f": newBuckets(list), "new": newBuckets(nil), "late": nil}
	for bucket, want := range map[string][]profile.Key{
		"":    {key("c", ""), key("d", "")},
		"r17": {key("c", ""), key("d", ""), key("c", "r17")},
		"r28": {key("c", ""), key("d", ""), key("c", "r28"), key("d", "r28")},
		"l3":  {key("c", ""), key("d", "")}, // never seen
	} {
		got := a.of("f", bucket)
		require.True(t, got.Asked)
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(got.Found)), bucket)
	}
	require.True(t, a.of("new", "r17").Asked)
	require.Empty(t, a.of("new", "r17").Found)
	require.False(t, a.of("late", "").Asked)
	require.False(t, a.of("never asked for", "r17").Asked)
}

func TestASubjectKnowsTheBucketOfItsParameters(t *testing.T) {
	texts, err := cache.New(cache.Default(), tidbast.Parse)
	require.NoError(t, err)
	d := &decider{texts: texts}
	subjectOf := func(sql string) subject {
		return d.subject(t.Context(), query.Task{ID: "a", SQL: sql, Dialect: "trino"}, 1)
	}
	day := subjectOf("SELECT count(*) FROM t WHERE d >= DATE '2026-01-01' AND d < DATE '2026-01-02'")
	years := subjectOf("SELECT count(*) FROM t WHERE d >= DATE '2020-01-01' AND d < DATE '2026-01-01'")
	require.Equal(t, day.fingerprint, years.fingerprint)
	require.Equal(t, "r17", day.bucket)
	require.Equal(t, "r28", years.bucket)
	require.Empty(t, subjectOf("SELECT count(*) FROM t").bucket, "no parameters: the profile of all counts")
}
