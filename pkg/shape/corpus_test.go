package shape_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

type corpusPrune struct {
	Table  string          `json:"table"`
	Column string          `json:"column"`
	Op     string          `json:"op"`
	Value  json.RawMessage `json:"value"`
}

type corpusCase struct {
	ID       string                     `json:"id"`
	Dialect  string                     `json:"dialect"`
	SQL      string                     `json:"sql"`
	Relation string                     `json:"relation"`
	Note     string                     `json:"note"`
	Expect   map[string]json.RawMessage `json:"expect"`
}

// corpus holds the public cases and our own.
func corpus(t testing.TB) []corpusCase {
	cases := readCorpus(t, "../../test/corpus/fingerprint/cases.jsonl")
	require.Len(t, cases, 152)
	return append(cases, readCorpus(t, "../../test/corpus/fingerprint/shapes.jsonl")...)
}

func readCorpus(t testing.TB, path string) []corpusCase {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var cases []corpusCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c corpusCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		cases = append(cases, c)
	}
	require.NoError(t, lines.Err())
	return cases
}

func as[T any](t testing.TB, raw json.RawMessage) T {
	var v T
	require.NoError(t, json.Unmarshal(raw, &v))
	return v
}

func lowered(names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, strings.ToLower(n))
	}
	sort.Strings(out)
	return out
}

func TestCorpusShapes(t *testing.T) {
	for _, c := range corpus(t) {
		if c.Relation != "shape" && c.Relation != "robust" {
			continue
		}
		d, err := lex.ParseDialect(c.Dialect)
		require.NoError(t, err)
		t.Run(c.ID, func(t *testing.T) {
			sql := c.SQL
			if raw, ok := c.Expect["append_bytes_hex"]; ok {
				tail, err := hex.DecodeString(as[string](t, raw))
				require.NoError(t, err)
				sql += string(tail)
			}
			checkShape(t, c, shape.Of(sql, d))
		})
	}
}

// checkShape asserts the keys that a case lists, and no others.
func checkShape(t *testing.T, c corpusCase, s shape.Shape) {
	for key, raw := range c.Expect {
		switch key {
		case "kind":
			require.Equal(t, as[string](t, raw), string(s.Statement), c.Note)
		case "read_only":
			require.Equal(t, as[bool](t, raw), s.ReadOnly, c.Note)
		case "tables":
			require.Equal(t, lowered(as[[]string](t, raw)), lowered(shape.Names(s.Tables)), c.Note)
		case "write_tables":
			require.Equal(t, lowered(as[[]string](t, raw)), lowered(shape.Names(s.WriteTables)), c.Note)
		case "join_tables":
			require.Equal(t, as[int](t, raw), s.JoinTables, c.Note)
		case "has_window":
			require.Equal(t, as[bool](t, raw), s.HasWindow(), c.Note)
		case "has_group_by":
			require.Equal(t, as[bool](t, raw), s.GroupBy, c.Note)
		case "has_udf":
			require.Equal(t, as[bool](t, raw), s.HasUDF(), c.Note)
		case "limit":
			require.Equal(t, as[*int64](t, raw), s.Limit, c.Note)
		case "offset":
			require.Equal(t, as[*int64](t, raw), s.Offset, c.Note)
		case "prune":
			for _, want := range as[[]corpusPrune](t, raw) {
				require.True(t, offered(t, s, want), "%s: want %s offered, have %+v", c.Note, want, s.Prunable)
			}
		case "must_not_prune":
			for _, bad := range as[[]corpusPrune](t, raw) {
				require.False(t, offered(t, s, bad), "%s: %s must not be offered", c.Note, bad)
			}
		case "only_prune":
			wants := as[[]corpusPrune](t, raw)
			for _, want := range wants {
				require.True(t, offered(t, s, want), "%s: want %s offered, have %+v", c.SQL, want, s.Prunable)
			}
			require.Len(t, s.Prunable, len(wants), "%s: %+v", c.SQL, s.Prunable)
		case "effect":
			require.Equal(t, as[string](t, raw), string(s.Effect), c.SQL)
		case "joins":
			require.Equal(t, as[int](t, raw), s.Joins.Total(), c.SQL)
		case "udfs":
			require.ElementsMatch(t, as[[]string](t, raw), s.UDFs, c.SQL)
		case "bucket":
			require.Equal(t, as[string](t, raw), s.Bucket, c.SQL)
		case "columns":
			require.Equal(t, as[*int](t, raw), s.OutputColumns, c.SQL)
		case "subquery_depth":
			require.Equal(t, as[int](t, raw), s.SubqueryDepth, c.SQL)
		case "generate", "max_ratio_per_doubling", "append_bytes_hex":
		default:
			t.Fatalf("case %s asserts %q, which this test does not know", c.ID, key)
		}
	}
}

func offered(t testing.TB, s shape.Shape, want corpusPrune) bool {
	for _, p := range s.Prunable {
		if !strings.EqualFold(p.Table.String(), want.Table) || !strings.EqualFold(p.Column, want.Column) || string(p.Op) != want.Op {
			continue
		}
		value, err := json.Marshal(p.Value)
		require.NoError(t, err)
		if len(want.Value) == 0 || string(value) == string(want.Value) {
			return true
		}
	}
	return false
}

// TestCorpusGrowth runs every generated text in growing sizes: time per doubling stays in bounds.
func TestCorpusGrowth(t *testing.T) {
	type generate struct {
		Prefix, Open, Core, Close, Suffix string
		Sizes                             []int
	}
	for _, c := range corpus(t) {
		raw, ok := c.Expect["generate"]
		if !ok {
			continue
		}
		d, err := lex.ParseDialect(c.Dialect)
		require.NoError(t, err)
		t.Run(c.ID, func(t *testing.T) {
			g := as[generate](t, raw)
			bound := as[float64](t, c.Expect["max_ratio_per_doubling"])
			best := make([]time.Duration, len(g.Sizes))
			worst := 0.0
			// The lowest of several times says what the text costs; more rounds, until other work on the machine has paused.
			for round := range 40 {
				for i, n := range g.Sizes {
					text := g.Prefix + strings.Repeat(g.Open, n) + g.Core + strings.Repeat(g.Close, n) + g.Suffix
					start := time.Now()
					s := shape.Of(text, d)
					if took := time.Since(start); round == 0 || took < best[i] {
						best[i] = took
					}
					checkShape(t, c, s)
				}
				worst = 0
				for i := 1; i < len(best); i++ {
					worst = max(worst, float64(best[i])/float64(best[i-1]))
				}
				if round >= 4 && worst <= bound {
					break
				}
			}
			require.LessOrEqual(t, worst, bound, "%v", best)
			t.Log(best)
		})
	}
}
