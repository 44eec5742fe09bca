package querylog

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/shape"
)

// maxCounted bounds the bytes of fingerprints that a summary counts one by one; statements of further ones are counted
// together.
const maxCounted = 128 << 20

// count is how often a fingerprint was seen in a batch.
type count struct {
	entry *entry
	n     int64
}

// summary adds counts up by identity.
type summary struct {
	counts map[fingerprint.ID]*counted
	bytes  int
	rest   int64
}

// counted is what a summary keeps of a fingerprint: less than the worker that has found it, which forgets.
type counted struct {
	canonical string
	statement shape.Statement
	readOnly  bool
	tables    []string
	n         int64
}

func newSummary() *summary { return &summary{counts: map[fingerprint.ID]*counted{}} }

func (s *summary) add(batch map[fingerprint.ID]*count) {
	for _, c := range batch {
		if have := s.counts[c.entry.id]; have != nil {
			have.n += c.n
			continue
		}
		sh := c.entry.template.Unbound()
		one := &counted{canonical: c.entry.canonical, statement: sh.Statement, readOnly: sh.ReadOnly, tables: shape.Names(sh.Tables), n: c.n}
		if n := one.size(); s.bytes+n > maxCounted {
			s.rest += c.n
		} else {
			s.bytes += n
			s.counts[c.entry.id] = one
		}
	}
}

// size is about what the count takes in memory.
func (c *counted) size() int {
	n := 256 + len(c.canonical)
	for _, t := range c.tables {
		n += 16 + len(t)
	}
	return n
}

// Top is one line of a summary.
type Top struct {
	Count       int64    `json:"count"`
	Share       float64  `json:"share"`
	Fingerprint string   `json:"fingerprint"`
	Statement   string   `json:"statement"`
	ReadOnly    bool     `json:"readOnly"`
	Tables      []string `json:"tables"`
	Example     string   `json:"example"` // canonical, so that no literal shows
}

// Totals is the last line of a summary.
type Totals struct {
	Statements   int64 `json:"statements"`
	Fingerprints int   `json:"fingerprints"`
	Bad          int64 `json:"bad"`
	// Uncounted are statements of fingerprints beyond those that could be counted one by one.
	Uncounted int64 `json:"uncounted,omitempty"`
}

// top writes the n most frequent fingerprints and the totals.
func (s *summary) top(n int, total Result) []byte {
	type ranked struct {
		id fingerprint.ID
		*counted
	}
	all := make([]ranked, 0, len(s.counts))
	for id, c := range s.counts {
		all = append(all, ranked{id, c})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.canonical, b.canonical), bytes.Compare(a.id[:], b.id[:]))
	})
	var out []byte
	for _, c := range all[:min(n, len(all))] {
		out = append(out, encoded(Top{
			Count: c.n, Share: float64(c.n) / float64(total.Statements), Fingerprint: c.id.String(), Statement: cmp.Or(string(c.statement), string(shape.Other)),
			ReadOnly: c.readOnly, Tables: c.tables, Example: c.canonical,
		})...)
		out = append(out, '\n')
	}
	out = append(out, encoded(Totals{Statements: total.Statements, Fingerprints: len(s.counts), Bad: total.Bad, Uncounted: s.rest})...)
	return append(out, '\n')
}
