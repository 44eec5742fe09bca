package result_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/services/executor/result"
)

var at = time.Date(2026, 11, 30, 9, 15, 0, 123456789, time.UTC)

func open(t *testing.T, cfg result.Config) (*result.Store, string) {
	t.Helper()
	if cfg.Folder == "" {
		cfg.Folder = t.TempDir()
	}
	if cfg.InlineBytes == 0 {
		cfg.InlineBytes = 1 << 20
	}
	if cfg.Keep == 0 {
		cfg.Keep = time.Hour
	}
	s, err := result.Open(cfg)
	require.NoError(t, err)
	return s, cfg.Folder
}

func columns(types ...string) []event.Column {
	var out []event.Column
	for _, typ := range types {
		out = append(out, event.Column{Name: "c", Type: typ})
	}
	return out
}

func TestValuesAreExact(t *testing.T) {
	s, _ := open(t, result.Config{})
	for _, c := range []struct {
		typ   string
		value any
		want  string
	}{
		{"Int64", int64(9007199254740993), `"9007199254740993"`},
		{"UInt64", uint64(18446744073709551615), `"18446744073709551615"`},
		{"UInt8", uint64(255), `255`},
		{"Nullable(Int32)", int64(-1), `-1`},
		{"Nullable(Int32)", nil, `null`},
		{"Array(Int64)", []any{int64(1), nil}, `["1",null]`},
		{"Tuple(UInt8, UInt64)", []any{uint64(1), uint64(2)}, `["1","2"]`},
		{"bigint", int64(1), `"1"`},
		{"integer", int64(1), `1`},
		{"some new type", int64(1), `"1"`},
		{"Decimal(38, 18)", json.Number("12345678901234567890.123456789012345678"), `"12345678901234567890.123456789012345678"`},
		{"Float64", 0.1, `0.1`},
		{"Float64", math.NaN(), `"NaN"`},
		{"Float64", math.Inf(-1), `"-Infinity"`},
		{"String", "a<b> \" \n é", `"a<b> \" \n é"`},
		{"Bool", true, `true`},
		{"Date", at, `"2026-11-30"`},
		{"DateTime64(9, 'UTC')", at, `"2026-11-30T09:15:00.123456789Z"`},
		{"Map(String, UInt64)", map[string]any{"b": uint64(2), "a": uint64(1)}, `{"a":"1","b":"2"}`},
	} {
		k := s.New("t/1", "", columns(c.typ), 1<<20)
		full, err := k.Add([]any{c.value})
		require.NoError(t, err)
		require.False(t, full)
		r, err := k.Finish(at)
		require.NoError(t, err)
		require.Equal(t, "[["+c.want+"]]", string(r.Inline), c.typ)
		require.True(t, json.Valid(r.Inline))
	}
	_, err := s.New("t/1", "", columns("x"), 10).Add([]any{struct{}{}})
	require.Error(t, err)
}

func TestSmallResultIsInline(t *testing.T) {
	s, folder := open(t, result.Config{})
	k := s.New("t/1", "", columns("UInt8"), 1<<20)
	for i := range 3 {
		_, err := k.Add([]any{uint64(i)})
		require.NoError(t, err)
	}
	r, err := k.Finish(at)
	require.NoError(t, err)
	require.Equal(t, `[[0],[1],[2]]`, string(r.Inline))
	require.Equal(t, string(rows.JSON), r.Format)
	require.EqualValues(t, 3, r.Rows)
	require.Nil(t, r.ExpiresAt)
	require.Empty(t, list(t, folder))

	r, err = s.New("t/2", "", columns("UInt8"), 1<<20).Finish(at)
	require.NoError(t, err)
	require.Equal(t, `[]`, string(r.Inline), "no row is a result")
	r, err = s.New("t/3", "", nil, 1<<20).Finish(at)
	require.NoError(t, err)
	require.Nil(t, r, "no column is none")
}

func TestLargeResultIsAFile(t *testing.T) {
	s, folder := open(t, result.Config{})
	k := s.New("a.b:c/12", "", columns("UInt8", "String"), 100)
	for i := range 50 {
		_, err := k.Add([]any{uint64(i), "line\nbreak"})
		require.NoError(t, err)
	}
	require.Len(t, list(t, folder), 1)
	require.True(t, strings.HasPrefix(list(t, folder)[0], "."), "nobody may take it for finished")
	r, err := k.Finish(at)
	require.NoError(t, err)
	require.Equal(t, []string{r.File}, list(t, folder))
	require.Equal(t, string(rows.NDJSON), r.Format)
	require.Empty(t, r.Inline)
	require.Equal(t, at.Add(time.Hour).Truncate(time.Millisecond), *r.ExpiresAt)
	data, err := os.ReadFile(filepath.Join(folder, r.File))
	require.NoError(t, err)
	require.EqualValues(t, len(data), r.Bytes)
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	require.Len(t, lines, 50)
	require.Equal(t, `[49,"line\nbreak"]`, string(lines[49]))
}

func TestInlineThatTurnsOutTooLarge(t *testing.T) {
	s, folder := open(t, result.Config{})
	k := s.New("t/1", "", columns("UInt8"), 1<<20)
	_, err := k.Add([]any{uint64(7)})
	require.NoError(t, err)
	r, err := k.Finish(at)
	require.NoError(t, err)
	require.NoError(t, k.ToFile(r, at))
	require.Empty(t, r.Inline)
	data, err := os.ReadFile(filepath.Join(folder, r.File))
	require.NoError(t, err)
	require.Equal(t, "[7]\n", string(data))
}

func TestSizeCapCutsAtARow(t *testing.T) {
	s, _ := open(t, result.Config{MaxBytes: 100})
	k := s.New("t/1", "", columns("String"), 30)
	n := 0
	for ; ; n++ {
		full, err := k.Add([]any{"0123456789"})
		require.NoError(t, err)
		if full {
			break
		}
	}
	r, err := k.Finish(at)
	require.NoError(t, err)
	require.True(t, r.Truncated)
	require.EqualValues(t, n, r.Rows)
	require.LessOrEqual(t, r.Bytes, int64(100))
}

func TestNamesStayWithinTheFolder(t *testing.T) {
	s, folder := open(t, result.Config{})
	for _, id := range []string{"../../etc/passwd/1", "..", "", "a\x00b/1", strings.Repeat("x", 400) + "/1", ".hidden/1"} {
		k := s.New(id, "", columns("String"), 0)
		_, err := k.Add([]any{"x"})
		require.NoError(t, err)
		r, err := k.Finish(at)
		require.NoError(t, err)
		require.True(t, filepath.IsLocal(r.File))
		require.NotContains(t, r.File, "/")
		require.FileExists(t, filepath.Join(folder, r.File))
		require.False(t, strings.HasPrefix(r.File, "."))
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	s, folder := open(t, result.Config{})
	k := s.New("t/1", "", columns("String"), 0)
	_, err := k.Add([]any{"x"})
	require.NoError(t, err)
	k.Discard()
	require.Empty(t, list(t, folder))
}

func TestSweep(t *testing.T) {
	s, folder := open(t, result.Config{Keep: time.Hour})
	now := time.Now()
	put := func(name string, age time.Duration) {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	put("new.ndjson", time.Minute)
	put("still-promised.ndjson", time.Hour)
	put("old.ndjson", 2*time.Hour)
	put(".writing-1", time.Minute)
	put(".writing-2", 3*time.Hour)
	put("not-ours.txt", 1000*time.Hour)
	n, err := s.Sweep(now)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{".writing-1", "new.ndjson", "not-ours.txt", "still-promised.ndjson"}, list(t, folder))
}

func list(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A file that is put on the disk while it is still written is whole at its end, and gone when it is dropped.
func TestLargeFile(t *testing.T) {
	s, folder := open(t, result.Config{})
	row := []any{strings.Repeat("x", 1<<20)}
	write := func() *result.Sink {
		k := s.New("t/1", rows.CSV, columns("String"), 0)
		for range 70 {
			_, err := k.Add(row)
			require.NoError(t, err)
		}
		return k
	}
	r, err := write().Finish(at)
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(folder, r.File))
	require.NoError(t, err)
	require.EqualValues(t, 70*(1<<20+2)+3, info.Size())
	require.Equal(t, info.Size(), r.Bytes)
	require.NoError(t, os.Remove(filepath.Join(folder, r.File)))

	write().Discard()
	require.Empty(t, list(t, folder))
}

// What can't be finished leaves no file and no open one.
func TestFolderThatWentAway(t *testing.T) {
	s, folder := open(t, result.Config{})
	k := s.New("t/1", "", columns("String"), 0)
	_, err := k.Add([]any{"x"})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(folder))
	_, err = k.Finish(at)
	require.ErrorIs(t, err, os.ErrNotExist)
	k.Discard()

	k = s.New("t/2", "", columns("String"), 1<<20)
	_, err = k.Add([]any{"x"})
	require.NoError(t, err)
	r, err := k.Finish(at)
	require.NoError(t, err)
	require.ErrorIs(t, k.ToFile(r, at), os.ErrNotExist)
}
