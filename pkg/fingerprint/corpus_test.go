package fingerprint_test

import (
	"bufio"
	"encoding/json"
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

func corpus(t testing.TB) []corpusCase {
	f, err := os.Open("../../test/corpus/fingerprint/cases.jsonl")
	require.NoError(t, err)
	defer f.Close()
	var cases []corpusCase
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c corpusCase
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		cases = append(cases, c)
	}
	require.Len(t, cases, 152)
	return cases
}

func TestCorpusRelations(t *testing.T) {
	for _, c := range corpus(t) {
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
