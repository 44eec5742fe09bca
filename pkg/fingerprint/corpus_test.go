package fingerprint_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint"
)

type corpusCase struct {
	ID       string `json:"id"`
	Dialect  string `json:"dialect"`
	SQL      string `json:"sql"`
	Relation string `json:"relation"`
	OtherSQL string `json:"other_sql"`
	Note     string `json:"note"`
	Expect   struct {
		Literals []string `json:"literals"`
	} `json:"expect"`
}

// corpus holds the public cases.
func corpus(t testing.TB) []corpusCase {
	cases := readCorpus(t, "../../test/corpus/fingerprint/cases.jsonl")
	require.Len(t, cases, 152)
	return cases
}

func readCorpus(t testing.TB, path string) []corpusCase {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var cases []corpusCase
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c corpusCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		cases = append(cases, c)
	}
	require.NoError(t, lines.Err())
	return cases
}

var update = flag.Bool("update", false, "write the golden identities anew, when the version of the rules has changed")

type goldenCase struct {
	Dialect   string `json:"dialect"`
	SQL       string `json:"sql"`
	Canonical string `json:"canonical"`
	ID        string `json:"id"`
}

// TestGoldenIdentities keeps canonical texts and identities as they are under one version of the rules: they are stored.
func TestGoldenIdentities(t *testing.T) {
	const path = "../../test/corpus/fingerprint/golden.jsonl"
	if *update {
		writeGolden(t, path)
	}
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	seen := 0
	for line := range strings.Lines(string(raw)) {
		var g goldenCase
		require.NoError(t, json.Unmarshal([]byte(line), &g))
		d, err := fingerprint.ParseDialect(g.Dialect)
		require.NoError(t, err)
		got := fingerprint.New(g.SQL, d)
		require.Equal(t, g.Canonical, got.Canonical, "%s: %s", g.Dialect, g.SQL)
		require.Equal(t, g.ID, got.ID.String())
		seen++
	}
	require.Greater(t, seen, 300)
}

func writeGolden(t *testing.T, path string) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	add := func(sql, dialect string) {
		d, err := fingerprint.ParseDialect(dialect)
		require.NoError(t, err)
		got := fingerprint.New(sql, d)
		require.NoError(t, enc.Encode(goldenCase{dialect, sql, got.Canonical, got.ID.String()}))
	}
	add("", "mysql")
	add("-- only a comment", "trino")
	for _, c := range corpus(t) {
		add(c.SQL, c.Dialect)
		if c.OtherSQL != "" {
			add(c.OtherSQL, c.Dialect)
		}
	}
	for _, s := range group(traffic(t), "no-list") {
		if len(s.SQL) < 1000 {
			add(s.SQL, s.Dialect)
		}
	}
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o644))
}

func TestCorpusRelations(t *testing.T) {
	for _, c := range append(corpus(t), readCorpus(t, "../../test/corpus/fingerprint/relations.jsonl")...) {
		d, err := fingerprint.ParseDialect(c.Dialect)
		require.NoError(t, err)
		t.Run(c.ID, func(t *testing.T) {
			a := fingerprint.New(c.SQL, d)
			switch c.Relation {
			case "same_fingerprint":
				b := fingerprint.New(c.OtherSQL, d)
				require.Equal(t, a.Canonical, b.Canonical, c.Note)
				require.Equal(t, a.ID, b.ID)
				require.Equal(t, a.Key, b.Key)
			case "different_fingerprint":
				b := fingerprint.New(c.OtherSQL, d)
				require.NotEqual(t, a.Canonical, b.Canonical, c.Note)
				require.NotEqual(t, a.ID, b.ID)
				require.NotEqual(t, a.Key, b.Key)
			case "no_leak":
				for _, lit := range c.Expect.Literals {
					require.NotContains(t, strings.ToLower(a.Canonical), strings.ToLower(lit), c.Note)
				}
			}
			again := fingerprint.New(a.Canonical, d)
			require.Equal(t, a.Canonical, again.Canonical)
		})
	}
}
