//go:build percona

package main

import "github.com/percona/go-mysql/query"

// Not every module proxy serves percona/go-mysql, so that it is not in go.mod: go get github.com/percona/go-mysql/query@b3e1c16,
// then go run -tags percona .
func init() {
	extraPeers = append(extraPeers, peer{"percona", func(s *statement) bool { return query.Fingerprint(s.SQL) != "" }})
}
