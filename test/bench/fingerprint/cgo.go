//go:build cgo && pgquery

package main

import pgquery "github.com/pganalyze/pg_query_go/v6"

// pg_query needs a C compiler and half a minute to build: go run -tags pgquery .
func init() {
	extraPeers = append(extraPeers,
		peer{"pg_query Fingerprint", func(s *statement) bool { _, err := pgquery.Fingerprint(s.SQL); return err == nil }},
		peer{"pg_query Normalize", func(s *statement) bool { _, err := pgquery.Normalize(s.SQL); return err == nil }},
	)
}
