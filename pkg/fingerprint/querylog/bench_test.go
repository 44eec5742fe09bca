package querylog_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/fingerprint/querylog"
)

// traffic is the corpus without long lists, as it comes in a log.
func traffic(b *testing.B) []string {
	f, err := os.Open("../../../test/corpus/fingerprint/traffic.jsonl")
	require.NoError(b, err)
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s struct{ Group, Dialect, SQL string }
		require.NoError(b, json.Unmarshal(lines.Bytes(), &s))
		if s.Group != "in" && s.Group != "insert" && s.Dialect != "postgres" {
			out = append(out, s.SQL)
		}
	}
	require.NoError(b, lines.Err())
	return out
}

// BenchmarkLog reads a log of 32 MiB. The lexer alone over the same statements is the bound.
func BenchmarkLog(b *testing.B) {
	statements := traffic(b)
	var sql, lines strings.Builder
	for sql.Len() < 32<<20 {
		for _, s := range statements {
			sql.WriteString(s)
			sql.WriteString("\n;\n")
			raw, err := json.Marshal(map[string]any{"id": lines.Len(), "sql": s})
			require.NoError(b, err)
			lines.Write(raw)
			lines.WriteByte('\n')
		}
	}
	b.Run("lexer", func(b *testing.B) {
		n := 0
		for _, s := range statements {
			n += len(s)
		}
		b.SetBytes(int64(n))
		var spans lex.Spans
		for b.Loop() {
			for _, s := range statements {
				lex.Run(s, lex.MySQL, lex.Key{}, &spans)
			}
		}
	})
	for _, c := range []struct {
		name, text string
		o          querylog.Options
	}{
		{"sql", sql.String(), querylog.Options{Input: querylog.SQL, Dialect: lex.MySQL}},
		{"jsonl", lines.String(), querylog.Options{Input: querylog.JSONL, Dialect: lex.MySQL}},
		{"top", sql.String(), querylog.Options{Input: querylog.SQL, Dialect: lex.MySQL, Top: 10}},
	} {
		for _, workers := range []int{1, 2} {
			c.o.Workers = workers
			b.Run(c.name+"/workers="+string(rune('0'+workers)), func(b *testing.B) {
				b.SetBytes(int64(len(c.text)))
				for b.Loop() {
					if _, err := querylog.Run(strings.NewReader(c.text), io.Discard, c.o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
