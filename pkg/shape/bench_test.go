package shape_test

import (
	"testing"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// BenchmarkExtract is what a fingerprint costs that was not seen before; BenchmarkBind, what one costs that was.
func BenchmarkExtract(b *testing.B) {
	cases := readCorpus(b, "../../test/corpus/fingerprint/traffic.jsonl")
	var spans lex.Spans
	b.ReportAllocs()
	for b.Loop() {
		for i := range cases {
			d, _ := lex.ParseDialect(cases[i].Dialect)
			shape.Extract(cases[i].SQL, d, &spans)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(cases)), "ns/stmt")
}

func BenchmarkBind(b *testing.B) {
	sql := "SELECT a, b FROM t JOIN u ON t.id = u.id WHERE ts >= '2026-01-01' AND ts < '2026-01-08' AND k IN (1, 2, 3) LIMIT 100"
	var spans lex.Spans
	t, r := shape.Extract(sql, lex.MySQL, &spans)
	var binding shape.Binding
	b.ReportAllocs()
	for b.Loop() {
		t.Bind(&binding, sql, lex.MySQL, r, &spans)
	}
}
