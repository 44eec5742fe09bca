package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Fault is one fault of a policy text, with its place.
type Fault struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	// Path is the YAML path, e.g. rules[2].when.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// String renders the fault as file:line:column: path: message.
func (f Fault) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Path, f.Message)
}

// FaultList is every fault of a policy, in the order of the text.
type FaultList []Fault

// Error lists the faults, one a line.
func (l FaultList) Error() string {
	lines := make([]string, len(l))
	for i, f := range l {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

func (l FaultList) sort() {
	slices.SortStableFunc(l, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// sections are the keys of a policy, in the order in which they are read: rules refer to what stands before them.
var sections = []option[Policy]{
	{
		key: "engines", about: "The pools to route to, by name.", form: form{name: "a mapping of pools", schema: named(poolPattern, schemaOf(describe(poolOptions))), required: true},
		read: func(r *reader, f field, p *Policy) {
			p.Pools = r.pools(f)
			p.Latches = quarantines(p.Pools)
			r.learn(p)
		},
	},
	{
		key: "defaults", about: "What counts where a request says nothing.",
		form: form{name: "a mapping", schema: map[string]any{"$ref": "#/$defs/defaults"}},
		read: func(r *reader, f field, p *Policy) { readOptions(r, f, "the defaults", defaultOptions, &p.Defaults) },
	},
	{
		key: "thresholds", about: "Named numbers: those of the decision core, and the policy's own, which rules refer to as $name.",
		form: form{name: "a mapping", schema: map[string]any{"$ref": "#/$defs/thresholds"}},
		read: func(r *reader, f field, p *Policy) { r.thresholds(f, &p.Thresholds) },
	},
	{
		key: "latches", about: "Truth values with hysteresis that follow the signals; rules test them by name.",
		form: form{name: "a mapping of latches", schema: named(namePattern, schemaOf(describe(latchOptions)))},
		read: func(r *reader, f field, p *Policy) {
			p.Latches = append(p.Latches, r.latches(f)...)
			r.learn(p)
		},
	},
	{
		key: "rules", about: "The rules, in order: the first that matches decides.",
		form: form{name: "a list of rules", schema: map[string]any{"$ref": "#/$defs/rules"}, required: true},
		read: func(r *reader, f field, p *Policy) { p.Rules = r.rules(f) },
	},
	{
		key: "tenants", about: "What single tenants have of their own.",
		form: form{name: "a mapping of tenants", schema: named("", schemaOf(describe(tenantOptions)))},
		read: func(r *reader, f field, p *Policy) { p.tenants = r.tenantPolicies(f, p) },
	},
	{
		key: "budgets", about: "What principals may use, by class.", form: mappingForm("a mapping", describe(budgetOptions)),
		read: func(r *reader, f field, p *Policy) { p.Budgets = r.budgets(f) },
	},
	{
		key: "summaries", about: "The summary tables of tables, by name: what a rejection may point to.",
		form: form{name: "a mapping of tables to tables", schema: named("", wordsSchema())},
		read: func(r *reader, f field, p *Policy) { p.Summaries = r.summaries(f) },
	},
	{
		key: "exploration", about: "How much of the traffic goes where the ranking would not send it, to learn.", form: mappingForm("a mapping", describe(explorationOptions)),
		read: func(r *reader, f field, p *Policy) { p.Exploration = r.exploration(f) },
	},
}

// learn makes what the policy has of pools and latches known to its rules.
func (r *reader) learn(p *Policy) {
	r.clusters = r.clusters[:0]
	for _, pool := range p.Pools {
		r.clusters = append(r.clusters, pool.Name)
	}
	r.names = newVocabulary(p.Pools, p.Latches)
}

// Hash identifies a policy's text.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Load compiles a policy text. A policy with any fault is refused as a whole, with all its faults as a FaultList.
// file is only used in messages.
func Load(file string, text []byte) (*Policy, error) {
	r := &reader{file: file, anchors: map[string]ast.Node{}, usedThresholds: map[string]bool{}}
	root, faults := parse(file, text)
	if faults != nil {
		return nil, faults
	}
	p := defaults()
	p.Hash, p.Source = Hash(text), string(text)
	r.numbers = &p.Thresholds
	r.learn(&p)
	if r.collectAliases(root) {
		r.policy(root, &p)
	}
	if len(r.faults) > 0 {
		r.faults.sort()
		return nil, r.faults
	}
	r.warnings.sort()
	p.words, p.Warnings = r.names, r.warnings
	for _, view := range p.tenants {
		view.words, view.tenants, view.Warnings = p.words, p.tenants, p.Warnings
		view.Budgets, view.Exploration, view.Summaries = p.Budgets, p.Exploration, p.Summaries
	}
	return &p, nil
}

// parse reads the YAML.
func parse(file string, text []byte) (root ast.Node, faults FaultList) {
	fault := func(line, column int, message string) FaultList {
		return FaultList{{File: file, Line: line, Column: column, Path: "$", Message: message}}
	}
	if message := checkText(text); message != "" {
		return nil, fault(1, 1, message)
	}
	// The parser is not ours, and a policy must never take a router down.
	defer func() {
		if recover() != nil {
			root, faults = nil, fault(1, 1, "not YAML: the parser gave up on it")
		}
	}()
	// A key that stands twice is a fault like others, which the reader lists.
	tree, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var at interface {
			GetToken() *token.Token
			GetMessage() string
		}
		if errors.As(err, &at) && at.GetToken() != nil {
			return nil, fault(at.GetToken().Position.Line, at.GetToken().Position.Column, "not YAML: "+at.GetMessage())
		}
		return nil, fault(1, 1, "not YAML: "+firstLine(err.Error()))
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return nil, fault(1, 1, "the policy must be one YAML document that is not empty")
	}
	return tree.Docs[0].Body, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// policy reads the whole.
func (r *reader) policy(root ast.Node, p *Policy) {
	fields := r.mapping("$", root)
	for _, f := range fields {
		if !slices.Contains(keysOf(sections), f.key) {
			r.fault(f.keyNode, f.path, "unknown key"+suggest(f.key, keysOf(sections)))
		}
	}
	for i := range sections {
		for _, f := range fields {
			if f.key == sections[i].key {
				sections[i].read(r, f, p)
				break
			}
		}
	}
	if len(p.Pools) == 0 {
		r.fault(root, "engines", "a policy needs at least one engine to route to")
	}
	r.uniqueNames("rules", p.Rules, nil)
	r.reachable(p, "rules", p.Rules)
	if !slices.ContainsFunc(p.Rules, func(rule Rule) bool { return rule.decides() && !rule.conditioned }) {
		at := placeOf(root)
		if n := len(p.Rules); n > 0 {
			at = place{p.Rules[n-1].Line, p.Rules[n-1].column}
		}
		r.faultAt(at, "rules", "no default: the last rule must have no `when`, e.g. `- name: default` with `route: auto`")
	}
	r.checkTags(p)
	r.unused(p)
}

// unused warns of what nothing refers to.
func (r *reader) unused(p *Policy) {
	for _, name := range slices.Sorted(maps.Keys(p.Thresholds.Named)) {
		if !r.usedThresholds[name] {
			r.warnAt(place{p.Thresholds.Named[name].Line, 3}, "thresholds."+name, "no rule and no latch uses it")
		}
	}
	for i, l := range p.Latches {
		if r.names.slot[r.names.latches+i] < 0 && !l.implied {
			r.warnAt(place{l.Line, l.column}, "latches."+l.Name, "no rule tests it")
		}
	}
}
