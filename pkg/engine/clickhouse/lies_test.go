package clickhouse_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
	"github.com/pointsman/pointsman/pkg/failure"
)

// framed is a piece of an answer with the checksum that belongs to it: a lie, and no garbage.
func framed(t *testing.T, data []byte) []byte {
	t.Helper()
	w := compress.NewWriter(compress.LevelZero, compress.LZ4)
	require.NoError(t, w.Compress(data))
	return bytes.Clone(w.Data)
}

func uvarint(values ...uint64) (out []byte) {
	for _, v := range values {
		out = binary.AppendUvarint(out, v)
	}
	return out
}

// TestServersThatLie: a class, a message, a bounded wait and bounded memory, whatever the answer says of itself.
func TestServersThatLie(t *testing.T) {
	g := newGate(t, chdbtest.Start(t, chdb.Config{Name: "lied-of"}).Addr())
	block := func(columns, rows uint64, rest string) []byte {
		return framed(t, append(append([]byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}, uvarint(columns, rows)...), rest...))
	}
	const column = "\x01x\x05UInt8\x00"
	for name, c := range map[string]struct {
		body    []byte
		message string
	}{
		"ten million columns":                      {block(10_000_000, 0, ""), "more columns"},
		"ten million columns, and some of them":    {block(10_000_000, 0, strings.Repeat(column, 200_000)), "more columns"},
		"ten million columns without the preamble": {framed(t, uvarint(10_000_000, 0)), "more columns"},
		"columns without end":                      {block(1<<62, 0, ""), "more columns"},
		"columns that do not come":                 {block(3, 0, column)[:40], ""},
		"a billion rows":                           {block(1, 1_000_000_001, column), "rows"},
		"rows that do not come":                    {block(1, 1000, column)[:45], ""},
		"a frame larger than any":                  {append(make([]byte, 16), 0x82, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f), ""},
		"a frame that ends early":                  {block(1, 0, column)[:20], ""},
		"another checksum":                         {append(make([]byte, 16), block(1, 0, column)[16:]...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g.set(onQuery(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-ClickHouse-Format", "Native")
				_, _ = w.Write(c.body)
			}))
			e := open(t, clickhouse.Config{Name: "c", Addrs: []string{strings.TrimPrefix(g.URL, "http://")}})
			t.Cleanup(func() { _ = e.Close() })
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			rows, err := e.Submit(t.Context(), engine.Query{ID: "lie/1", SQL: "SELECT 1"})
			if err == nil {
				for rows.Next() {
				}
				err = rows.Err()
				require.NoError(t, rows.Close())
			}
			runtime.ReadMemStats(&after)
			var said *engine.Error
			require.ErrorAs(t, err, &said)
			require.Equal(t, engine.SentUnknown, said.Phase)
			require.Contains(t, said.Error(), c.message)
			require.Equal(t, c.message == "more columns", errors.Is(err, engine.ErrColumns))
			require.Equal(t, string(failure.SubmitUnknown), failure.Classify(failure.Report{Engine: clickhouse.Kind, Message: said.Error(), Reach: failure.SentUnknown}).Class)
			require.Less(t, time.Since(began), 5*time.Second)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		})
	}
}

// TestATypeThatNobodyKnows: it is the statement that gives it, and there is nothing to be tried again.
func TestATypeThatNobodyKnows(t *testing.T) {
	g := newGate(t, chdbtest.Start(t, chdb.Config{Name: "newer"}).Addr())
	g.set(onQuery(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-ClickHouse-Format", "Native")
		_, _ = w.Write(framed(t, []byte("\x01\x00\x02\xff\xff\xff\xff\x00\x01\x01\x01x\x05UInt9\x00")))
	}))
	e := open(t, clickhouse.Config{Name: "c", Addrs: []string{strings.TrimPrefix(g.URL, "http://")}})
	t.Cleanup(func() { _ = e.Close() })
	_, err := e.Submit(t.Context(), engine.Query{ID: "newer/1", SQL: "SELECT 1"})
	requireUnreadable(t, err)
	require.ErrorContains(t, err, "UInt9")
}

func requireUnreadable(t *testing.T, err error) {
	t.Helper()
	var said *engine.Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, engine.Answered, said.Phase)
	require.Equal(t, string(failure.Semantic), failure.Classify(failure.Report{Engine: clickhouse.Kind, Code: said.Code, Message: said.Error(), Reach: failure.Answered}).Class)
	require.ErrorContains(t, err, "cast what is of an unusual type to String")
}

// TestTheDriverPanics: on a value, and on the head of a result. Neither takes the process with it, nor a place in the pool for ever.
func TestTheDriverPanics(t *testing.T) {
	g := newGate(t, chdbtest.Start(t, chdb.Config{Name: "panics"}).Addr())
	e := open(t, clickhouse.Config{Name: "c", Queries: 2, DialTimeout: 2 * time.Second, Addrs: []string{strings.TrimPrefix(g.URL, "http://")}})
	t.Cleanup(func() { _ = e.Close() })
	rows, err := e.Submit(t.Context(), engine.Query{ID: "panics/1", SQL: `SELECT map('k', CAST('{"a":1}' AS JSON))`})
	require.NoError(t, err)
	require.True(t, rows.Next())
	_, err = rows.Values()
	requireUnreadable(t, err)
	require.NoError(t, rows.Close())

	goesOn, err := e.Submit(t.Context(), engine.Query{ID: "panics/2", SQL: "SELECT number FROM numbers(500000) SETTINGS max_block_size = 1000"})
	require.NoError(t, err)
	defer goesOn.Close()
	require.True(t, goesOn.Next())
	const odd = `Enum8('a' = 1, 'b,(' = 2, 'c\'d' = 3, '=' = 4, '' = 5)` // a type like any other to a server
	g.set(onQuery(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-ClickHouse-Format", "Native")
		_, _ = w.Write(framed(t, []byte("\x01\x00\x02\xff\xff\xff\xff\x00\x01\x01\x01x"+string(rune(len(odd)))+odd+"\x00\x01")))
	}))
	for range 5 {
		_, err := e.Submit(t.Context(), engine.Query{ID: "garbage/1", SQL: "SELECT 1"})
		require.ErrorContains(t, err, "the server answers what is no result")
		requireUnreadable(t, err)
	}
	g.set(nil)
	rows, err = e.Submit(t.Context(), engine.Query{ID: "panics/4", SQL: "SELECT 1"})
	require.NoError(t, err)
	require.True(t, rows.Next())
	require.NoError(t, rows.Close())
	n := 1
	for goesOn.Next() {
		n++
	}
	require.NoError(t, goesOn.Err())
	require.Equal(t, 500000, n, "what runs meanwhile is not disturbed")
}

// TestAServerThatSaysItHasKilled: what a server says of a kill is believed only when the query has gone from its list, and waited for within
// a bound.
func TestAServerThatSaysItHasKilled(t *testing.T) {
	g := newGate(t, chdbtest.Start(t, chdb.Config{Name: "says-killed"}).Addr())
	g.set(func(_ http.ResponseWriter, r *http.Request) bool {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.HasPrefix(string(body), "KILL QUERY") {
			body = []byte("SELECT 'waiting' AS kill_status")
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return false
	})
	e := open(t, clickhouse.Config{Name: "c", Addrs: []string{strings.TrimPrefix(g.URL, "http://")}})
	t.Cleanup(func() { _ = e.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := e.Submit(ctx, engine.Query{ID: "lives/1", SQL: "SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1"})
		ended <- err
	}()
	active := func() bool {
		run, err := e.Find(t.Context(), "lives/1")
		return err == nil && run.State == engine.RunActive
	}
	require.Eventually(t, active, 15*time.Second, 20*time.Millisecond)
	bound, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	found, err := e.Kill(bound, "lives/1")
	require.True(t, found)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, active())

	began := time.Now()
	cancel()
	var said *engine.Error
	require.ErrorAs(t, <-ended, &said)
	require.Equal(t, engine.SentUnknown, said.Phase)
	require.ErrorContains(t, said, "did not confirm that it stopped")
	require.Less(t, time.Since(began), 10*time.Second)
}
