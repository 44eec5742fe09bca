package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/loadgen/tpch"
	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

// These tests run the workload's SQL on the real engine, on generated data at the demo's scale. They skip where the
// engine's library can't be had.

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	code := m.Run()
	_ = os.RemoveAll(dataRoot)
	os.Exit(code)
}

const demoScale = 0.05

var dataRoot string

// demoData generates the demo's tables once for all tests of the package.
var demoData = sync.OnceValues(func() (tpch.Manifest, error) {
	var err error
	if dataRoot, err = os.MkdirTemp("", "loadgen-workload-"); err != nil {
		return tpch.Manifest{}, err
	}
	dataRoot, err = filepath.EvalSymlinks(dataRoot)
	if err != nil {
		return tpch.Manifest{}, err
	}
	opts := tpch.Options{Scale: demoScale, Seed: 1}
	opts.Dir = filepath.Join(dataRoot, "it's data") // a name that needs quoting
	return tpch.Generate(context.Background(), opts)
})

// pool is a running engine with the views over the demo's tables.
type pool struct {
	url string
	pid int
}

func startPool(t *testing.T, cfg chdb.Config) pool {
	t.Helper()
	engine := chdbtest.Start(t, cfg)
	m, err := demoData()
	require.NoError(t, err)
	statements, err := tpch.ViewStatements("tpch", filepath.Join(dataRoot, "it's data"), m)
	require.NoError(t, err)
	p := pool{url: engine.URL(), pid: engine.Pid()}
	for _, statement := range statements {
		_, err := p.query(statement)
		require.NoError(t, err)
	}
	return p
}

// interactive and batch are the two physics of the demo.
func interactive(t *testing.T) pool {
	return startPool(t, chdb.Config{
		Name: "interactive", Settings: map[string]string{"max_threads": "2"}, Caps: map[string]string{"max_memory_usage": "200000000"},
	})
}

func batch(t *testing.T) pool {
	return startPool(t, chdb.Config{Name: "batch", Settings: map[string]string{
		"max_threads": "2", "max_bytes_before_external_group_by": "80000000", "max_bytes_ratio_before_external_group_by": "0",
	}, Caps: map[string]string{"max_memory_usage": "600000000"}})
}

type engineError struct{ code, text string }

func (e engineError) Error() string { return "code " + e.code + ": " + e.text }

// query returns the rows of the result, as tab-separated lines.
func (p pool) query(sql string, settings ...string) ([]string, error) {
	values := url.Values{"default_format": {"TabSeparated"}, "wait_end_of_query": {"1"}}
	for i := 0; i+1 < len(settings); i += 2 {
		values.Set(settings[i], settings[i+1])
	}
	response, err := http.Post(p.url+"/?"+values.Encode(), "text/plain", strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, engineError{response.Header.Get("X-ClickHouse-Exception-Code"), strings.TrimSpace(string(body))}
	}
	if len(body) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(body), "\n"), "\n"), nil
}

// Every template of the trace gives the rows of its original text, for several parameter sets.
func TestTemplatesOnTheEngine(t *testing.T) {
	p := interactive(t)
	originals := originalTemplates(t)
	rows, err := cabRows()
	require.NoError(t, err)
	for template := 1; template <= Templates; template++ {
		t.Run(fmt.Sprintf("q%02d", template), func(t *testing.T) {
			tried, found := 0, 0
			for _, row := range rows {
				if row.template != template || tried == 4 {
					continue
				}
				tried++
				sql, err := bind(cabTemplates()[template-1], row.args...)
				require.NoError(t, err)
				got, err := p.query(sql)
				require.NoError(t, err, sql)
				want, err := p.query(original(t, originals[template], template, row.args), "join_use_nulls", "1")
				require.NoError(t, err)
				slices.Sort(got) // order among equals is free
				slices.Sort(want)
				require.Empty(t, cmp.Diff(want, got), "parameters %v", row.args)
				found += len(got)
			}
			if template == 18 {
				return // orders of more than 312 items are rarer than one in this many
			}
			require.Positive(t, found, "a template that never finds a row tests nothing")
		})
	}
}

func originalTemplates(t *testing.T) map[int]string {
	t.Helper()
	f, err := os.Open("../../test/corpus/cab/templates.jsonl")
	require.NoError(t, err)
	defer f.Close()
	out := map[int]string{}
	for in := bufio.NewScanner(f); in.Scan(); {
		var line struct {
			Template int
			SQL      string
		}
		require.NoError(t, json.Unmarshal(in.Bytes(), &line))
		out[line.Template] = strings.TrimSuffix(line.SQL, ";")
	}
	require.Len(t, out, Templates+1)
	return out
}

var (
	originalTable = regexp.MustCompile(`:(region|nation|supplier|customer|partsupp|part|orders|lineitem)\b`)
	codeList      = regexp.MustCompile(`\((:\d+(?:, :\d+){6})\)`)
)

// original is the trace's own text with as few changes as the engine lets us get away with: names of tables and of a
// function, decimals where Q6 would compare with an inexact float, strings for Q22's country codes.
func original(t *testing.T, sql string, template int, args []any) string {
	t.Helper()
	sql = strings.NewReplacer("add_months", "addMonths", "::number(12,2)", "::Decimal(12, 2)", "0.01", "0.01::Decimal(12, 2)").Replace(sql)
	if template == 22 {
		sql = codeList.ReplaceAllString(sql, "(toString(:1), toString(:2), toString(:3), toString(:4), toString(:5), toString(:6), toString(:7))")
	}
	sql, err := bind(sql, args...)
	require.NoError(t, err)
	return originalTable.ReplaceAllString(sql, "tpch.$1")
}

// Everything but the scans and the transformation fits the interactive pool, and finds something.
func TestTheRestOnTheEngine(t *testing.T) {
	p := interactive(t)
	arrivals, err := Generate(Options{Seed: 1})
	require.NoError(t, err)
	medium := 0
	for _, a := range arrivals {
		switch a.Kind {
		case CAB, Scan, Transformation:
			continue
		case Medium, Burst, Tight:
			if medium++; medium > 9 {
				continue // three of each text are enough
			}
		}
		rows, err := p.query(a.Task.SQL)
		require.NoError(t, err, "%s: %s", a.Kind, a.Task.SQL)
		require.NotEmpty(t, rows, "%s: %s", a.Kind, a.Task.SQL)
	}
}

// The point of the two pools: what the interactive one kills, batch finishes by spilling, with the same rows that an
// engine without limits gives.
func TestWhatInteractiveKillsBatchFinishes(t *testing.T) {
	fast, slow := interactive(t), batch(t)
	unlimited := startPool(t, chdb.Config{Name: "unlimited", Settings: map[string]string{"max_threads": "2"}})
	arrivals, err := Generate(Options{Seed: 1})
	require.NoError(t, err)
	parts := byKind(arrivals)
	for _, a := range append(parts[Transformation], parts[Scan][0], parts[Scan][4]) {
		_, err := fast.query(a.Task.SQL)
		var refused engineError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "241", refused.code, "%s: memory limit", a.Kind)

		rows, err := slow.query(a.Task.SQL)
		require.NoError(t, err)
		want, err := unlimited.query(a.Task.SQL)
		require.NoError(t, err)
		require.NotEmpty(t, rows)
		require.Empty(t, cmp.Diff(keys(want), keys(rows)))
	}
}

// keys drops the averages and any(…) of a result, which may depend on the order in which rows are met.
func keys(rows []string) []string {
	var out []string
	for _, row := range rows {
		fields := strings.Split(row, "\t")
		out = append(out, strings.Join(fields[:2], " "))
	}
	return out
}
