package router

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/profile"
)

// oracle is a history that takes its time, and records what it was asked.
type oracle struct {
	takes time.Duration

	mu    sync.Mutex
	calls [][]string
	err   error
}

func (o *oracle) Profiles(ctx context.Context, fingerprints []string, _ time.Time) (map[profile.Key]profile.Profile, error) {
	o.mu.Lock()
	o.calls = append(o.calls, fingerprints)
	err := o.err
	o.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(o.takes):
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
		require.Len(t, got["known"].Found, 1)
		require.True(t, got["new"].Asked, "no history is an answer")
		require.Empty(t, got["new"].Found)

		p.lookup(t.Context(), []string{"known", "new", "third"})
		require.Equal(t, []string{"third"}, o.asked()[1], "what is cached is not asked for, not even when it has no history")
		p.wait()
	})
}

func TestSlowHistoryHoldsNobodyUpAndServesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 300 * time.Millisecond}
		p := newTestProfiles(t, o)
		start := time.Now()
		got := p.lookup(t.Context(), []string{"known"})
		require.Equal(t, 100*time.Millisecond, time.Since(start), "the deadline")
		require.False(t, got["known"].Asked, "unknown is not the same as no history")

		time.Sleep(time.Second)
		require.Len(t, p.lookup(t.Context(), []string{"known"})["known"].Found, 1, "the late answer")
		require.Len(t, o.asked(), 1)
		p.wait()
	})
}

func TestOneQueryAtATimeForAllPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 40 * time.Millisecond}
		p := newTestProfiles(t, o)
		var wg sync.WaitGroup
		for _, f := range []string{"a", "b", "c", "d"} {
			wg.Go(func() { require.True(t, p.lookup(t.Context(), []string{f})[f].Asked) })
			if f == "a" {
				synctest.Wait() // its query is on its way
			}
		}
		wg.Wait()
		require.Len(t, o.asked(), 2, "the first alone, the others together behind it")
		p.wait()
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
		require.Len(t, got["known"].Found, 1, "older than its time, but better than nothing")
		require.False(t, got["other"].Asked)
		time.Sleep(time.Hour)
		require.False(t, p.lookup(t.Context(), []string{"known"})["known"].Asked, "too old to be believed")
		p.wait()
	})
}

func TestWhatIsInUseIsAskedForAgainBeforeItIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{takes: 50 * time.Millisecond}
		p := newTestProfiles(t, o)
		p.lookup(t.Context(), []string{"known", "idle"})
		for range 20 {
			time.Sleep(10 * time.Second)
			start := time.Now()
			require.Len(t, p.lookup(t.Context(), []string{"known"})["known"].Found, 1)
			require.Zero(t, time.Since(start), "nobody waits for what is in use")
		}
		p.wait()
		calls := o.asked()
		require.InDelta(t, 6, len(calls), 1, "about as often as half its time goes by")
		for _, call := range calls[1:] {
			require.Equal(t, []string{"known"}, call, "what nobody wants is not asked for again")
		}
	})
}

func TestRefreshesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &oracle{}
		p := newTestProfiles(t, o)
		p.lookup(t.Context(), []string{"a", "b", "c"})
		time.Sleep(40 * time.Second)
		for _, f := range []string{"a", "b", "c", "a"} {
			p.lookup(t.Context(), []string{f})
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		require.Len(t, o.asked(), 2)
		require.ElementsMatch(t, []string{"a", "b", "c"}, o.asked()[1])

		time.Sleep(35 * time.Second)
		p.lookup(t.Context(), []string{"a"})
		p.lookup(t.Context(), []string{"new"})
		require.ElementsMatch(t, []string{"a", "new"}, o.asked()[2], "a query that somebody waits for takes them along")
		time.Sleep(20 * time.Second)
		require.Len(t, o.asked(), 3)
		p.wait()
	})
}
