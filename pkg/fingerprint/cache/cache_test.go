package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func made(t testing.TB, opts Options, parse Parse) *Cache {
	c, err := New(opts, parse)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestLookupBindsEachTextsOwnLiterals(t *testing.T) {
	c := made(t, Default(), tidbast.Parse)
	var l Lookup
	for i := range 3 {
		sql := fmt.Sprintf("SELECT a FROM t WHERE k = 'secret%d' AND ds IN (1, %d) LIMIT %d", i, i, 10+i)
		c.Get(context.Background(), sql, lex.MySQL, &l)
		s := l.Shape()
		require.Equal(t, int64(10+i), *s.Limit)
		require.Equal(t, fmt.Sprintf("secret%d", i), s.Prunable[0].Value.String())
		require.Equal(t, fingerprint.Of(sql, lex.MySQL), l.Entry.ID)
		require.NotContains(t, l.Entry.Canonical, "secret")
	}
	require.Equal(t, 1, c.Stats().Entries)
	require.EqualValues(t, 1, c.Stats().Misses)
	require.EqualValues(t, 1, c.Stats().Parses)
	c.wait.Wait()
	c.Get(context.Background(), "SELECT a FROM t WHERE k = 1 AND ds IN (2) LIMIT 3", lex.MySQL, &l)
	require.Equal(t, shape.FromAST, l.Entry.Template.Unbound().Source)
}

// A parser that takes too long does not keep a lookup waiting; what it finds serves the next one. However many ask
// meanwhile, it is asked once.
func TestLateResultServesTheNextLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(sql string, d lex.Dialect) *shape.Template {
			time.Sleep(time.Minute)
			return tidbast.Parse(sql, d)
		}
		c := made(t, Options{MaxBytes: 1 << 20, Budget: 5 * time.Millisecond, Parsers: 2}, slow)
		sources := make([]shape.Source, 8)
		var wait sync.WaitGroup
		start := time.Now()
		for i := range sources {
			wait.Go(func() {
				var l Lookup
				c.Get(context.Background(), "SELECT a FROM t WHERE b = 1", lex.MySQL, &l)
				sources[i] = l.Shape().Source
			})
		}
		wait.Wait()
		require.LessOrEqual(t, time.Since(start), 5*time.Millisecond)
		for _, s := range sources {
			require.Equal(t, shape.FromTokens, s)
		}
		time.Sleep(2 * time.Minute)
		var l Lookup
		c.Get(context.Background(), "SELECT a FROM t WHERE b = 2", lex.MySQL, &l)
		require.Equal(t, shape.FromAST, l.Shape().Source)
		require.EqualValues(t, 1, c.Stats().Parses)
	})
}

func TestBusyParsersAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(sql string, d lex.Dialect) *shape.Template {
			time.Sleep(time.Second)
			return tidbast.Parse(sql, d)
		}
		c := made(t, Options{MaxBytes: 1 << 20, Parsers: 1}, slow)
		var l Lookup
		c.Get(context.Background(), "SELECT a FROM t", lex.MySQL, &l)
		c.Get(context.Background(), "SELECT b FROM t", lex.MySQL, &l)
		require.EqualValues(t, 1, c.Stats().Busy)
		time.Sleep(2 * time.Second)
		c.Get(context.Background(), "SELECT b FROM t", lex.MySQL, &l)
		require.Equal(t, shape.FromTokens, l.Shape().Source)
		time.Sleep(2 * time.Second)
		c.Get(context.Background(), "SELECT b FROM t", lex.MySQL, &l)
		require.Equal(t, shape.FromAST, l.Shape().Source)
	})
}

func TestCancelledLookupStillAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(string, lex.Dialect) *shape.Template { time.Sleep(time.Minute); return nil }
		c := made(t, Options{MaxBytes: 1 << 20, Budget: time.Second, Parsers: 1}, slow)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		var l Lookup
		start := time.Now()
		c.Get(ctx, "SELECT a FROM t", lex.MySQL, &l)
		require.Zero(t, time.Since(start))
		require.Equal(t, []string{"t"}, shape.Names(l.Shape().Tables))
	})
}

func TestBytesAreBounded(t *testing.T) {
	const limit = 1 << 20
	c := made(t, Options{MaxBytes: limit, Parsers: 1}, nil)
	var l Lookup
	for i := range 20_000 {
		c.Get(context.Background(), fmt.Sprintf("SELECT column_%d FROM table_%d WHERE %s = 1", i, i, strings.Repeat("x", i%500)+"y"), lex.MySQL, &l)
		require.NotNil(t, l.Entry)
	}
	s := c.Stats()
	require.LessOrEqual(t, s.Bytes, limit)
	require.Greater(t, s.Bytes, limit/2)
	// One text that is larger than all of it is answered and not kept.
	before := c.Stats().Entries
	c.Get(context.Background(), "SELECT "+strings.Repeat("a, ", 100_000)+"b FROM t", lex.MySQL, &l)
	require.Equal(t, []string{"t"}, shape.Names(l.Shape().Tables))
	c.Close()
	require.Equal(t, before, c.Stats().Entries)
}

func TestKeysDifferBetweenCaches(t *testing.T) {
	a, b := made(t, Default(), nil), made(t, Default(), nil)
	require.NotEqual(t, a.seed, b.seed)
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(Options{MaxBytes: 1, Budget: -1, Parsers: 0}, nil)
	require.ErrorContains(t, err, "maxBytes")
	require.ErrorContains(t, err, "budget")
	require.ErrorContains(t, err, "parsers")
}

func TestHitAllocatesNothing(t *testing.T) {
	c := made(t, Options{MaxBytes: 1 << 20, Parsers: 1}, nil)
	var l Lookup
	sql := "SELECT a, b FROM t JOIN u ON t.id = u.id WHERE ts >= '2026-01-01' AND ts < '2026-01-08' AND k IN (1, 2, 3) LIMIT 100"
	get := func() { c.Get(context.Background(), sql, lex.MySQL, &l) }
	get()
	c.wait.Wait()
	get()
	require.Zero(t, testing.AllocsPerRun(200, get))
	require.Equal(t, "l2-r20-n7", l.Binding.Bucket.String())
}

func BenchmarkHit(b *testing.B) {
	c := made(b, Options{MaxBytes: 1 << 20, Parsers: 1}, nil)
	var l Lookup
	sql := "SELECT a, b FROM t JOIN u ON t.id = u.id WHERE ts >= '2026-01-01' AND ts < '2026-01-08' AND k IN (1, 2, 3) LIMIT 100"
	c.Get(context.Background(), sql, lex.MySQL, &l)
	c.wait.Wait()
	b.Run("key", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lex.Run(sql, lex.MySQL, lex.Key{}, nil)
		}
	})
	b.Run("hit", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Get(context.Background(), sql, lex.MySQL, &l)
		}
	})
}
