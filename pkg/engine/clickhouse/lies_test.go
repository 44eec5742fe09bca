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
		"a type that nobody knows":                 {block(1, 1, "\x01x\x05UInt9\x00"), "UInt9"},
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
