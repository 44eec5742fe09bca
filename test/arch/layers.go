package arch

import (
	"slices"
	"strings"
)

// Module is the path that every package of this repository begins with.
const Module = "github.com/pointsman/pointsman"

// Layer is a part of the tree with one rule for its imports.
type Layer string

// The layers. A package that is in none is a violation: name it below.
const (
	Core      Layer = "core"      // pure: decides, and does nothing
	Port      Layer = "port"      // what adapters of one kind implement
	Shared    Layer = "shared"    // what adapters of one kind have in common
	Adapter   Layer = "adapter"   // speaks to one thing outside
	Platform  Layer = "platform"  // what any service needs: configuration, telemetry, embedded parts
	Data      Layer = "data"      // files with an embed.go
	Wiring    Layer = "wiring"    // picks among adapters of one kind, for every service
	Service   Layer = "service"   // wires the above
	Command   Layer = "command"   // services/pointsman, which wires everything
	Loadgen   Layer = "loadgen"   // an outside producer, that knows no more than one
	Generator Layer = "generator" // a program behind a go:generate line: any `package main` below pkg/
	Testing   Layer = "testing"   // test/ and every package whose name ends in "test"
)

// core is in order: a package imports only from those before it.
var core = []string{
	"pkg/query",  // identities and SLA
	"pkg/signal", // known, stale and absent values
	"pkg/event",  // payloads
	"pkg/failure",
	"pkg/ledger",
	"pkg/fingerprint/lex",
	"pkg/fingerprint",
	"pkg/shape",
	"pkg/shape/tidbast", // a second reader of shapes, from a parser's tree
	"pkg/profile",
	"pkg/estimate",
	"pkg/budget",
	"pkg/policy",
	"pkg/classify",
	"pkg/capacity",
	"pkg/route",
	"pkg/scenario", // cases that test a policy
	"pkg/replay",   // decisions made again
	"pkg/contrast", // two policies against each other
	"pkg/attempt",
}

// trees are all packages at or below a path; the longest path that fits counts. Packages of one tree may import each
// other, those of two trees of adapters or services may not.
var trees = []struct {
	path  string
	layer Layer
}{
	{"pkg/engine/*", Adapter}, // each engine is a tree of its own
	{"pkg/engine/wire", Shared},
	{"pkg/history", Adapter},
	{"pkg/stream", Adapter},
	{"pkg/catalog", Adapter},
	{"pkg/rows", Adapter},
	{"pkg/kube", Adapter},
	{"pkg/probe", Adapter},
	{"pkg/fingerprint/cache", Adapter},
	{"pkg/fingerprint/querylog", Adapter},

	{"pkg/config", Platform},
	{"pkg/telemetry", Platform},
	{"pkg/lifecycle", Platform},
	{"pkg/embedded", Platform},

	{"topics", Data},
	{"migrations", Data},
	{"deploy", Data},

	{"pkg/engines", Wiring},

	{"services/*", Service},
	{"services/pointsman", Command},
	{"loadgen", Loadgen},
	{"test", Testing},
	{"docs", Testing},
}

// ports are single packages that the adapters below them implement.
var ports = []string{"pkg/engine"}

// allowed says which layers a layer may import. Core's order, and who may import its own kind, is in check.go.
var allowed = map[Layer][]Layer{
	Core:      {Core},
	Port:      {Core},
	Shared:    {Core, Port, Platform},
	Adapter:   {Core, Port, Shared, Platform, Data},
	Platform:  {Platform},
	Data:      {},
	Wiring:    {Core, Port, Shared, Adapter, Platform},
	Service:   {Core, Port, Adapter, Platform, Data, Wiring},
	Command:   {Core, Port, Adapter, Platform, Data, Wiring, Service, Loadgen},
	Loadgen:   {Core, Platform, Data}, // of core only loadgenCore
	Generator: {Core, Port, Adapter, Platform, Data, Wiring, Service, Command},
	Testing:   {Core, Port, Shared, Adapter, Platform, Data, Wiring, Service, Command, Loadgen, Testing},
}

// loadgenCore is what a producer outside would find in the contracts.
var loadgenCore = []string{"pkg/query", "pkg/signal", "pkg/event"}

// banned are packages that a layer may not import, by path or by path and everything below it ("net/...").
var banned = map[Layer][]string{
	Core: {
		"net", "net/http/...", "net/rpc/...", "net/smtp", "os/...", "io/ioutil", "syscall/...", "plugin",
		"database/sql/...", "log/...", "context", "crypto/rand", "runtime/debug", "unsafe",
	},
	Data: {"os/...", "net/..."},
}

// coreLibraries are the modules outside the standard library that core may import: parsers and hashes, nothing that
// opens anything.
var coreLibraries = []string{
	"github.com/goccy/go-yaml/...", "cel.dev/cel-go/...", "github.com/zeebo/xxh3/...", "github.com/oklog/ulid/...",
	"github.com/pingcap/tidb/pkg/parser/...", "github.com/go-json-experiment/json/...",
}

// testOnly are libraries that no shipped binary may contain. The embedded broker is built on one of them on purpose.
var testOnly = []string{
	"testing/...", "github.com/stretchr/testify/...", "github.com/google/go-cmp/...", "pgregory.net/rapid/...",
	"go.uber.org/goleak/...", "github.com/rogpeppe/go-internal/...", "net/http/httptest",
}

// Place is where a package belongs.
type Place struct {
	Layer Layer
	Tree  string // path of the tree, or of the package in core
	Rank  int    // in core
}

// place finds a package by its path inside the module; isMain says that it is a program.
func place(path string, isMain bool) (Place, bool) {
	last := path[strings.LastIndex(path, "/")+1:]
	if strings.HasSuffix(last, "test") {
		return Place{Layer: Testing, Tree: path}, true
	}
	if isMain && strings.HasPrefix(path, "pkg/") {
		return Place{Layer: Generator, Tree: path}, true
	}
	for rank, p := range core {
		if path == p {
			return Place{Layer: Core, Tree: path, Rank: rank}, true
		}
	}
	if slices.Contains(ports, path) {
		return Place{Layer: Port, Tree: path}, true
	}
	var best Place
	for _, t := range trees {
		if tree, ok := within(path, t.path); ok && len(tree) >= len(best.Tree) {
			best = Place{Layer: t.layer, Tree: tree}
		}
	}
	return best, best.Layer != ""
}

// within says whether a path is at or below a pattern, and which tree that makes: for "services/*" it is
// "services/router".
func within(path, pattern string) (tree string, ok bool) {
	if parent, each := strings.CutSuffix(pattern, "/*"); each {
		rest, below := strings.CutPrefix(path, parent+"/")
		if !below {
			return "", false
		}
		name, _, _ := strings.Cut(rest, "/")
		return parent + "/" + name, true
	}
	return pattern, path == pattern || strings.HasPrefix(path, pattern+"/")
}

// matches says whether an import path is at a pattern, or below one that ends in "/...".
func matches(path, pattern string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return path == base || (below && strings.HasPrefix(path, base+"/"))
}
