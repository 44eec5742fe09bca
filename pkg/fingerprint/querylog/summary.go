package querylog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/shape"
)

// maxCounted bounds the fingerprints that a summary counts one by one; statements of further ones are counted together.
const maxCounted = 1 << 20

// count is how often a fingerprint was seen.
type count struct {
	entry *entry
	n     int64
}

// summary adds counts up by identity.
type summary struct {
	counts map[fingerprint.ID]*count
	rest   int64
}

func newSummary() *summary { return &summary{counts: map[fingerprint.ID]*count{}} }

func (s *summary) add(batch map[fingerprint.ID]*count) {
	for _, c := range batch {
		if have := s.counts[c.entry.id]; have != nil {
			have.n += c.n
			continue
		}
		if len(s.counts) >= maxCounted {
			s.rest += c.n
			continue
		}
		s.counts[c.entry.id] = c
	}
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
	all := make([]*count, 0, len(s.counts))
	for _, c := range s.counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *count) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.entry.canonical, b.entry.canonical))
	})
	var out []byte
	for _, c := range all[:min(n, len(all))] {
		sh := c.entry.template.Unbound()
		out = append(out, encoded(Top{
			Count: c.n, Share: float64(c.n) / float64(total.Statements), Fingerprint: c.entry.id.String(), Statement: cmp.Or(string(sh.Statement), string(shape.Other)),
			ReadOnly: sh.ReadOnly, Tables: shape.Names(sh.Tables), Example: c.entry.canonical,
		})...)
		out = append(out, '\n')
	}
	out = append(out, encoded(Totals{Statements: total.Statements, Fingerprints: len(s.counts), Bad: total.Bad, Uncounted: s.rest})...)
	return append(out, '\n')
}
