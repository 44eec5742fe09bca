package workload

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestBind(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		args []any
		want string
	}{
		"string and number": {"a = :1 AND b < :2", []any{"x", json.Number("12")}, "a = 'x' AND b < 12"},
		"twice":             {":1, :1", []any{3}, "3, 3"},
		"ten is not one":    {":10", []any{1, 2, 3, 4, 5, 6, 7, 8, 9, "ten"}, "'ten'"},
		"quotes":            {":1", []any{`o'hara \`}, `'o\'hara \\'`},
		"decimal":           {":1", []any{json.Number("0.5")}, "0.5"},
		"text like another": {":1", []any{":2"}, "':2'"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bind(c.sql, c.args...)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestBindRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		sql  string
		args []any
	}{
		"missing argument": {":2", []any{1}},
		"zero":             {":0", []any{1}},
		"number as text":   {":1", []any{json.Number("1 OR 1=1")}},
		"other type":       {":1", []any{true}},
		"float":            {":1", []any{0.1}}, // would be written in Go's way
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bind(c.sql, c.args...)
			require.Error(t, err)
		})
	}
}

func TestReadTraceRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"empty":       "",
		"refresh":     "arrival_ms,stream,template,args\n1,2,23,[]\n",
		"not a time":  "arrival_ms,stream,template,args\nx,2,3,[]\n",
		"bad args":    "arrival_ms,stream,template,args\n1,2,3,x\n",
		"no column":   "arrival_ms,stream,args\n1,2,[]\n",
		"short line":  "arrival_ms,stream,template,args\n1,2\n",
		"bad quoting": "arrival_ms,stream,template,args\n1,2,3,\"[\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readTrace(strings.NewReader(in))
			require.Error(t, err)
		})
	}
}

// The embedded trace is what the corpus file gives. Run with -update after a change of the corpus.
func TestTraceIsTheCorpus(t *testing.T) {
	f, err := os.Open("../../test/corpus/cab/snowflake_shared_1h_4s_1tb.csv")
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"arrival_ms", "stream", "scale_gb", "pattern", "template", "args", "queue_ms", "service_ms", "client_lag_ms"}, records[0])
	var b strings.Builder
	w := csv.NewWriter(&b)
	reads := 0
	for i, r := range records {
		if r[4] != "23" {
			require.NoError(t, w.Write([]string{r[0], r[1], r[4], r[5]}))
			reads += min(i, 1)
		}
	}
	w.Flush()
	if *update {
		require.NoError(t, os.WriteFile("trace/cab.csv", []byte(b.String()), 0o644))
	}
	require.Empty(t, cmp.Diff(b.String(), cabTrace))
	rows, err := cabRows()
	require.NoError(t, err)
	require.Len(t, rows, reads)
	require.Equal(t, 5272, reads)
}

func TestEveryReadOfTheTraceBinds(t *testing.T) {
	rows, err := cabRows()
	require.NoError(t, err)
	for _, row := range rows {
		sql, err := bind(cabTemplates()[row.template-1], row.args...)
		require.NoError(t, err)
		require.False(t, placeholder.MatchString(sql), sql)
	}
}
