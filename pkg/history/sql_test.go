package history_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func readSQL(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("sql/" + name + ".sql")
	require.NoError(t, err)
	return string(text)
}

// TestBucketsAreRolledUpLikeTheWhole: the rollups by bucket say the same of a part as the others of all.
func TestBucketsAreRolledUpLikeTheWhole(t *testing.T) {
	part := readSQL(t, "rollup_attempt_bucket_1h")
	require.Equal(t, 3, strings.Count(part, ", bucket"))
	part = strings.NewReplacer(", bucket", "", " AND bucket != ''", "", "attempt_bucket_1h", "attempt_1h").Replace(part)
	require.Empty(t, cmp.Diff(readSQL(t, "rollup_attempt_1h"), part))
}

var folded = regexp.MustCompile(`\s+`)

// facts are what a statement computes of attempt_ends, from the first count on.
func facts(t *testing.T, sql string) string {
	t.Helper()
	text := folded.ReplaceAllString(sql, " ")
	end := strings.Index(text, " FROM attempt_ends FINAL")
	require.Positive(t, end)
	begin := strings.LastIndex(text[:end], "count(), countIf(ok)")
	require.Positive(t, begin)
	return strings.TrimSuffix(text[begin:end], ", {rev:UInt64}")
}

// TestTheNewestHoursAreReadAsTheyAreRolledUp: what a profile reads of hours that are not rolled up yet is what their rollup will say.
func TestTheNewestHoursAreReadAsTheyAreRolledUp(t *testing.T) {
	require.Empty(t, cmp.Diff(facts(t, readSQL(t, "rollup_attempt_1h")), facts(t, readSQL(t, "profiles"))))
}

// TestClassesAreNotWrittenOut: which failures mean what is said in Go, once.
func TestClassesAreNotWrittenOut(t *testing.T) {
	files, err := os.ReadDir("sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.NotRegexp(t, `error_class\s*(=|IN)\s*\(?'`, readSQL(t, strings.TrimSuffix(f.Name(), ".sql")), f.Name())
	}
}
