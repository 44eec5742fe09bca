package router

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/profile"
)

// asked records what history was asked for.
type asked struct {
	calls [][]string
	err   error
}

func (a *asked) Profiles(_ context.Context, fingerprints []string, _ time.Time) (map[profile.Key]profile.Profile, error) {
	a.calls = append(a.calls, fingerprints)
	if a.err != nil {
		return nil, a.err
	}
	k := profile.Key{Fingerprint: "known", Engine: "e", Cluster: "c"}
	return map[profile.Key]profile.Profile{k: {Key: k, Runs: 3}}, nil
}

func TestProfilesAreAskedForTogetherAndOnce(t *testing.T) {
	source := &asked{}
	p, err := newProfiles(source, ProfilesConfig{CacheSize: 10, CacheTTL: time.Minute, LookupDeadline: time.Second}, slog.New(slog.DiscardHandler), newMetrics(nil))
	require.NoError(t, err)
	clock := now
	p.clock = func() time.Time { return clock }

	got := p.lookup(t.Context(), []string{"known", "new", "known"})
	require.Equal(t, [][]string{{"known", "new"}}, source.calls)
	require.Len(t, got["known"].Found, 1)
	require.True(t, got["new"].Asked, "no history is an answer")
	require.Empty(t, got["new"].Found)

	p.lookup(t.Context(), []string{"known", "new", "third"})
	require.Equal(t, []string{"third"}, source.calls[1], "what is cached is not asked for, not even when it has no history")

	clock = clock.Add(2 * time.Minute)
	source.err = errors.New("down")
	got = p.lookup(t.Context(), []string{"known"})
	require.False(t, got["known"].Asked, "history that is down is not the same as no history")
	require.Len(t, source.calls, 3)
}
