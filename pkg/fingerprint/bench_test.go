package fingerprint_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

type statement struct {
	Group, Dialect, SQL string
	d                   lex.Dialect
}

// traffic is the corpus that the benchmarks run over.
func traffic(t testing.TB) []statement {
	f, err := os.Open("../../test/corpus/fingerprint/traffic.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var out []statement
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s statement
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		s.d, err = lex.ParseDialect(s.Dialect)
		require.NoError(t, err)
		out = append(out, s)
	}
	require.NoError(t, lines.Err())
	require.Len(t, out, 159)
	return out
}

func group(all []statement, name string) []statement {
	var out []statement
	for _, s := range all {
		list := s.Group == "in" || s.Group == "insert"
		if name == "all" || name == "no-list" && !list || s.Group == name {
			out = append(out, s)
		}
	}
	return out
}

var sink uint64

// BenchmarkKey is one pass of the lexer; BenchmarkScan the sum of a text's bytes, the limit of any loop over them.
func BenchmarkKey(b *testing.B) {
	for _, name := range []string{"all", "no-list", "point"} {
		texts := group(traffic(b), name)
		b.Run(name, func(b *testing.B) {
			n := bytesOf(texts)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				for i := range texts {
					sink += lex.Run(texts[i].SQL, texts[i].d, lex.Key{}, nil).Key.Hi
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(texts)), "ns/stmt")
		})
	}
}

func BenchmarkSpans(b *testing.B) {
	texts := group(traffic(b), "no-list")
	b.SetBytes(int64(bytesOf(texts)))
	b.ReportAllocs()
	var spans lex.Spans
	for b.Loop() {
		for i := range texts {
			sink += lex.Run(texts[i].SQL, texts[i].d, lex.Key{}, &spans).Key.Hi
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(texts)), "ns/stmt")
}

func BenchmarkScan(b *testing.B) {
	texts := group(traffic(b), "no-list")
	b.SetBytes(int64(bytesOf(texts)))
	for b.Loop() {
		for i := range texts {
			var sum uint64
			s := texts[i].SQL
			for k := range len(s) {
				sum += uint64(s[k])
			}
			sink += sum
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(texts)), "ns/stmt")
}

func bytesOf(texts []statement) int {
	n := 0
	for i := range texts {
		n += len(texts[i].SQL)
	}
	return n
}
