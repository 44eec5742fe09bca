package enginetest

import (
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// Result is how an engine did in one capability.
type Result string

// The results. A capability that failed has none: then nothing is recorded.
const (
	Passed  Result = "passed"
	LeftOut Result = "left out" // the engine can't, or the test has no way to ask for it
)

// UpdateEnv has a run of the suite write its outcome down instead of comparing it.
const UpdateEnv = "POINTSMAN_UPDATE_ENGINES"

// Column is the outcome of the suite for one engine.
type Column struct {
	Engine  string            `json:"engine"`
	Proof   string            `json:"proof"`
	Results map[string]Result `json:"results"`
	// Exceptions are why some are left out.
	Exceptions map[string]string `json:"exceptions,omitempty"`
}

// record keeps an outcome, or compares it with the one that is kept: the page of engines is made of those.
func (f Fixture) record(t *testing.T, results map[string]Result) {
	t.Helper()
	if f.Record == "" || filtered() {
		return
	}
	for _, c := range capabilities {
		if results[c.Name] == LeftOut && f.Exceptions[c.Name] == "" {
			t.Errorf("%s is left out, and no exception says why", c.Name)
		}
	}
	now := Column{f.Engine, f.Proof, results, f.Exceptions}
	_, source, _, ok := runtime.Caller(0)
	require.True(t, ok && filepath.IsAbs(source), "the place of the results is unknown: build tests without -trimpath")
	file := filepath.Join(filepath.Dir(source), "results", f.Record+".json")
	if os.Getenv(UpdateEnv) != "" {
		text, err := json.MarshalIndent(now, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
		return
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with %s=1 to keep its outcome", UpdateEnv)
	var kept Column
	require.NoError(t, json.Unmarshal(text, &kept))
	if diff := cmp.Diff(kept, now); diff != "" {
		t.Errorf("the outcome is not the one that is kept (run with %s=1, then go generate ./docs/...):\n%s", UpdateEnv, diff)
	}
}

// filtered says that only a part of the suite was run.
func filtered() bool {
	run := flag.Lookup("test.run")
	return run != nil && strings.Contains(run.Value.String(), "/")
}

// MadeUp is the Proof of an engine that was none.
const MadeUp = "made-up exchanges"

func (c Column) cell(capability string) string {
	switch {
	case c.Results[capability] != Passed:
		return "–"
	case c.Proof == MadeUp:
		return "(yes)"
	default:
		return "yes"
	}
}

//go:embed results
var kept embed.FS

// Matrix writes the table of engines, capabilities and how they were proven.
func Matrix() (string, error) {
	var columns []Column
	files, err := fs.Glob(kept, "results/*.json")
	if err != nil {
		return "", err
	}
	for _, file := range files { // in order of their names
		text, err := kept.ReadFile(file)
		if err != nil {
			return "", err
		}
		var c Column
		if err := json.Unmarshal(text, &c); err != nil {
			return "", fmt.Errorf("reading %s: %w", file, err)
		}
		columns = append(columns, c)
	}
	if len(columns) == 0 {
		return "", errors.New("no outcome of the suite is kept")
	}
	var b strings.Builder
	b.WriteString("| capability |")
	for _, c := range columns {
		b.WriteString(" " + c.Engine + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n| *how it was proven* |")
	for _, c := range columns {
		b.WriteString(" *" + c.Proof + "* |")
	}
	b.WriteString("\n")
	for _, p := range capabilities {
		b.WriteString("| " + p.Means + " |")
		for _, c := range columns {
			b.WriteString(" " + c.cell(p.Name) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString(exceptions(columns))
	return b.String(), nil
}

// exceptions lists why capabilities are left out. Engines that lack the same for the same reason stand together.
func exceptions(columns []Column) string {
	type gap struct{ means, why string }
	var gaps []gap
	engines := map[gap][]string{}
	for _, c := range columns {
		means := map[string][]string{} // by reason
		var whys []string
		for _, p := range capabilities {
			if why := c.Exceptions[p.Name]; why != "" {
				if means[why] == nil {
					whys = append(whys, why)
				}
				means[why] = append(means[why], "*"+p.Means+"*")
			}
		}
		for _, why := range whys {
			g := gap{strings.Join(means[why], "; "), why}
			if engines[g] == nil {
				gaps = append(gaps, g)
			}
			engines[g] = append(engines[g], c.Engine)
		}
	}
	if len(gaps) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nWhy there is a dash:\n\n")
	for _, g := range gaps {
		fmt.Fprintf(&b, "- %s, %s: %s\n", strings.Join(engines[g], ", "), g.means, g.why)
	}
	return b.String()
}
