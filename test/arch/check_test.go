package arch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// graphOf builds a graph from packages and their imports. An import that is no key is one from outside.
func graphOf(imports map[string][]string) Graph {
	programs := []string{"services/router/cmd/pointsman-router", "pkg/attempt/internal/gen", "loadgen"}
	g := Graph{}
	for path, list := range imports {
		name := "x"
		if slices.Contains(programs, path) {
			name = "main"
		}
		p := Package{ImportPath: Module + "/" + path, Name: name}
		for _, to := range list {
			if _, own := imports[to]; own {
				to = Module + "/" + to
			}
			p.Imports = append(p.Imports, to)
		}
		g[p.ImportPath] = p
	}
	return g
}

// Every row breaks one rule, or none: a checker that finds nothing anywhere would pass the tree for ever.
func TestCheckFinds(t *testing.T) {
	for name, c := range map[string]struct {
		graph map[string][]string
		want  []string
	}{
		"nothing wrong": {map[string][]string{
			"services/router/cmd/pointsman-router": {"services/router", "os"},
			"services/router":                      {"pkg/route", "pkg/stream", "pkg/telemetry", "topics", "net/http"},
			"pkg/route":                            {"pkg/query", "time", "github.com/goccy/go-yaml/ast", "net/url", "math/rand/v2"},
			"pkg/query":                            {"strings"},
			"pkg/engine/trino/dialect":             {"pkg/engine", "pkg/engine/trino", "pkg/query"},
			"pkg/engine/trino":                     {"net/http"},
			"pkg/engine":                           {"pkg/query"},
			"pkg/stream":                           {"github.com/twmb/franz-go/pkg/kgo", "pkg/config"},
			"pkg/stream/streamtest":                {"testing", "github.com/twmb/franz-go/pkg/kfake", "services/router"},
			"pkg/config":                           {}, "pkg/telemetry": {"pkg/config"}, "topics": {"embed"},
			"pkg/attempt/internal/gen": {"os", "pkg/query"},
			"services/pointsman":       {"services/router", "loadgen/tpch"},
			"loadgen/tpch":             {"pkg/query"},
		}, nil},
		"core upwards": {
			map[string][]string{"pkg/query": {"pkg/route"}, "pkg/route": {}},
			[]string{"pkg/query -> pkg/route: core imports only what is before it in the table of test/arch/layers.go"},
		},
		"core to a driver, with the program it ends in": {
			map[string][]string{
				"services/router/cmd/pointsman-router": {"services/router"}, "services/router": {"pkg/route"},
				"pkg/route": {"pkg/query"}, "pkg/query": {"github.com/twmb/franz-go/pkg/kgo"},
			},
			[]string{"services/router/cmd/pointsman-router -> services/router -> pkg/route -> pkg/query -> github.com/twmb/franz-go/pkg/kgo: core may import only the libraries that test/arch/layers.go lists"},
		},
		"core to adapter":            {map[string][]string{"pkg/route": {"pkg/stream"}, "pkg/stream": {}}, []string{"pkg/route -> pkg/stream: core may not import adapter"}},
		"core to platform":           {map[string][]string{"pkg/route": {"pkg/config"}, "pkg/config": {}}, []string{"pkg/route -> pkg/config: core may not import platform"}},
		"core to os":                 {map[string][]string{"pkg/route": {"os/exec"}}, []string{"pkg/route -> os/exec: core may not import os/..."}},
		"core to net":                {map[string][]string{"pkg/route": {"net"}}, []string{"pkg/route -> net: core may not import net"}},
		"core to slog":               {map[string][]string{"pkg/route": {"log/slog"}}, []string{"pkg/route -> log/slog: core may not import log/..."}},
		"core with a context":        {map[string][]string{"pkg/route": {"context"}}, []string{"pkg/route -> context: core may not import context"}},
		"adapter to adapter":         {map[string][]string{"pkg/stream": {"pkg/history"}, "pkg/history": {}}, []string{"pkg/stream -> pkg/history: one adapter may not import another"}},
		"engine to engine":           {map[string][]string{"pkg/engine/trino": {"pkg/engine/doris"}, "pkg/engine/doris": {}}, []string{"pkg/engine/trino -> pkg/engine/doris: one adapter may not import another"}},
		"adapter to service":         {map[string][]string{"pkg/stream": {"services/router"}, "services/router": {}}, []string{"pkg/stream -> services/router: adapter may not import service"}},
		"port to adapter":            {map[string][]string{"pkg/engine": {"pkg/engine/trino"}, "pkg/engine/trino": {}}, []string{"pkg/engine -> pkg/engine/trino: port may not import adapter"}},
		"platform to core":           {map[string][]string{"pkg/embedded/broker": {"pkg/event"}, "pkg/event": {}}, []string{"pkg/embedded/broker -> pkg/event: platform may not import core"}},
		"service to service":         {map[string][]string{"services/router": {"services/executor/http"}, "services/executor/http": {}}, []string{"services/router -> services/executor/http: one service may not import another"}},
		"service to the command":     {map[string][]string{"services/router": {"services/pointsman"}, "services/pointsman": {}}, []string{"services/router -> services/pointsman: service may not import command"}},
		"data to anything":           {map[string][]string{"topics": {"pkg/event"}, "pkg/event": {}}, []string{"topics -> pkg/event: data may not import core"}},
		"loadgen to service":         {map[string][]string{"loadgen": {"services/router"}, "services/router": {}}, []string{"loadgen -> services/router: loadgen may not import service"}},
		"loadgen to adapter":         {map[string][]string{"loadgen": {"loadgen/x"}, "loadgen/x": {"pkg/stream"}, "pkg/stream": {}}, []string{"loadgen -> loadgen/x -> pkg/stream: loadgen may not import adapter"}},
		"loadgen deep into core":     {map[string][]string{"loadgen": {"pkg/route"}, "pkg/route": {}}, []string{"loadgen -> pkg/route: loadgen knows no more of the core than a producer outside"}},
		"shipped code to *test":      {map[string][]string{"services/router": {"pkg/stream/streamtest"}, "pkg/stream/streamtest": {}}, []string{"services/router -> pkg/stream/streamtest: service may not import testing"}},
		"shipped code to test/":      {map[string][]string{"pkg/stream": {"test/testkit"}, "test/testkit": {}}, []string{"pkg/stream -> test/testkit: adapter may not import testing"}},
		"shipped code to testify":    {map[string][]string{"pkg/stream": {"github.com/stretchr/testify/require"}}, []string{"pkg/stream -> github.com/stretchr/testify/require: is for tests only"}},
		"shipped code to testing":    {map[string][]string{"pkg/stream": {"testing"}}, []string{"pkg/stream -> testing: is for tests only"}},
		"generator that is imported": {map[string][]string{"pkg/attempt": {"pkg/attempt/internal/gen"}, "pkg/attempt/internal/gen": {}}, []string{"pkg/attempt -> pkg/attempt/internal/gen: a generator is run, not imported"}},
		"unknown package":            {map[string][]string{"pkg/helpers": {}}, []string{"pkg/helpers: is in no layer: name it in test/arch/layers.go"}},
		"unlisted part of core":      {map[string][]string{"pkg/route/ranking": {}}, []string{"pkg/route/ranking: is in no layer: name it in test/arch/layers.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range Check(graphOf(c.graph)) {
				got = append(got, v.String())
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestPlace(t *testing.T) {
	for path, want := range map[string]Place{
		"pkg/query":                 {Core, "pkg/query", 0},
		"pkg/engine":                {Port, "pkg/engine", 0},
		"pkg/engine/clickhouse/sql": {Adapter, "pkg/engine/clickhouse", 0},
		"pkg/fingerprint/cache":     {Adapter, "pkg/fingerprint/cache", 0},
		"services/pointsman/up":     {Command, "services/pointsman", 0},
		"services/router/cmd/x":     {Service, "services/router", 0},
		"pkg/engine/enginetest":     {Testing, "pkg/engine/enginetest", 0},
	} {
		got, ok := place(path, false)
		require.True(t, ok, path)
		require.Equal(t, want, got, path)
	}
}

func TestClockFinds(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want []string
	}{
		"times that are given":  {`package x; import "time"; func f(now time.Time) time.Time { return now.Add(time.Second).UTC() }`, nil},
		"seeded randomness":     {`package x; import "math/rand/v2"; func f(s uint64) int { return rand.New(rand.NewPCG(s, 1)).IntN(3) }`, nil},
		"a method called Now":   {`package x; import "time"; type in struct{ Now time.Time }; func f(i in) time.Time { return i.Now }`, nil},
		"a call":                {"package x\nimport \"time\"\nvar t = time.Now()", []string{"x.go:3:9: time.Now: core is told the time, it does not look"}},
		"a function value":      {"package x\nimport \"time\"\nvar now = time.Now", []string{"x.go:3:11: time.Now: core is told the time, it does not look"}},
		"another name":          {"package x\nimport clk \"time\"\nvar t = clk.Since", []string{"x.go:3:9: clk.Since: core is told the time, it does not look"}},
		"waiting":               {"package x\nimport \"time\"\nfunc f() { <-time.After(1) }", []string{"x.go:3:14: time.After: core is told the time, it does not look"}},
		"global randomness":     {"package x\nimport \"math/rand/v2\"\nvar n = rand.IntN(3)", []string{"x.go:3:9: rand.IntN: core is given a seed, global randomness cannot be replayed"}},
		"old global randomness": {"package x\nimport \"math/rand\"\nvar n = rand.Intn(3)", []string{"x.go:3:9: rand.Intn: core is given a seed, global randomness cannot be replayed"}},
		"dot import":            {"package x\nimport . \"time\"\nvar t = Now()", []string{"x.go:2:8: a dot import of time hides where the clock is read"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := clockIn("x.go", c.src)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	_, err := clockIn("x.go", "no go")
	require.Error(t, err)
}

// The whole way on a module of its own, as go list sees it: imports of tests don't count, those of code do.
func TestOnAModuleThatBreaksTheRules(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/broken.txtar")
	require.NoError(t, err)
	dir := t.TempDir()
	for _, f := range archive.Files {
		name := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, f.Data, 0o600))
	}
	graph, err := List(dir)
	require.NoError(t, err)
	var got []string
	for _, v := range Check(graph) {
		got = append(got, v.String())
	}
	require.Equal(t, []string{
		"services/router/cmd/pointsman-router -> services/router -> pkg/route -> os: core may not import os/...",
		"services/router/cmd/pointsman-router -> services/router -> services/executor: one service may not import another",
	}, got)
	clocks, err := Clock(graph)
	require.NoError(t, err)
	require.Len(t, clocks, 1)
	require.Contains(t, clocks[0], filepath.Join("pkg", "route", "route.go")+":10:9: time.Now: core is told the time")
}
