package main

import (
	"runtime"
	"strings"

	"github.com/DataDog/go-sqllexer"
	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"vitess.io/vitess/go/vt/sqlparser"
)

var (
	sink       uint64
	extraPeers []peer
)

// peers are what pointsman is measured against, and two limits: the sum of a text's bytes, and our own pass with its
// literals collected. Peers that need more than a module proxy add themselves to extraPeers.
func peers() []peer {
	bare := sqllexer.NewObfuscator(sqllexer.WithReplaceDigits(false))
	normalize := sqllexer.NewNormalizer()
	full := sqllexer.NewNormalizer(sqllexer.WithCollectCommands(true), sqllexer.WithCollectTables(true), sqllexer.WithCollectComments(true))
	vitess, err := sqlparser.New(sqlparser.Options{})
	if err != nil {
		panic(err)
	}
	var spans lex.Spans
	return append([]peer{
		{"byte scan", func(s *statement) bool {
			var sum uint64
			for i := 0; i < len(s.SQL); i++ {
				sum += uint64(s.SQL[i])
			}
			sink += sum
			return true
		}},
		{"pointsman with literals", func(s *statement) bool { return lex.Run(s.SQL, s.d, lex.Key{}, &spans).Tokens > 0 }},
		{"datadog bare", func(s *statement) bool {
			_, _, err := sqllexer.ObfuscateAndNormalize(s.SQL, bare, normalize, sqllexer.WithDBMS(dbms(s.d)))
			return err == nil
		}},
		{"datadog full", func(s *statement) bool {
			_, _, err := sqllexer.ObfuscateAndNormalize(s.SQL, bare, full, sqllexer.WithDBMS(dbms(s.d)))
			return err == nil
		}},
		{"tidb Normalize", func(s *statement) bool { return parser.Normalize(s.SQL, "ON") != "" }},
		{"tidb NormalizeDigest", func(s *statement) bool { n, _ := parser.NormalizeDigest(s.SQL); return n != "" }},
		{"vitess Redact", func(s *statement) bool {
			if strings.HasPrefix(s.SQL, "CREATE") {
				return false // half-read definitions are accepted with a warning, and the warning is what would be timed
			}
			_, err := vitess.RedactSQLQuery(s.SQL)
			return err == nil
		}},
	}, extraPeers...)
}

func dbms(d lex.Dialect) sqllexer.DBMSType {
	switch {
	case d.MySQLLike():
		return sqllexer.DBMSMySQL
	case d == lex.Postgres:
		return sqllexer.DBMSPostgres
	}
	return ""
}

// allocs is the number of Go allocations a statement.
func allocs(p peer, texts []statement) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range texts {
		p.run(&texts[i])
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(len(texts))
}
