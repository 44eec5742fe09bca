package failure_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/failure"
)

var update = flag.Bool("update", false, "write the table in docs/execution.md anew")

func TestRemediesAreInTheDocs(t *testing.T) {
	const begin, end = "<!-- generated: remedies -->\n", "<!-- end -->"
	page := filepath.Join("..", "..", "docs", "execution.md")
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *update && have != failure.Remedies() {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+failure.Remedies()+end+after), 0o644))
		return
	}
	require.Equal(t, failure.Remedies(), have, "run go generate ./pkg/failure")
}
