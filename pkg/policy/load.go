package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Fault is one fault of a policy text, with its place.
type Fault struct {
	File   string
	Line   int
	Column int
	// Path is the YAML path, e.g. rules[2].when.
	Path    string
	Message string
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

// Load compiles a policy text. A policy with any fault is refused as a whole, with all its faults as a FaultList.
// file is only used in messages.
func Load(file string, text []byte) (*Policy, error) {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, FaultList{{File: file, Line: 1, Column: 1, Path: "$", Message: "not YAML: " + firstLine(err.Error())}}
	}
	r := &reader{file: file}
	p := defaults()
	sum := sha256.Sum256(text)
	p.Hash, p.Source = hex.EncodeToString(sum[:8]), string(text)
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return nil, FaultList{{File: file, Line: 1, Column: 1, Path: "$", Message: "the policy must be one YAML document that is not empty"}}
	}
	root := r.mapping("$", tree.Docs[0].Body)
	// Pools first: the facts that rules may test carry the pools' names.
	for _, f := range root {
		if f.key == "engines" {
			p.Pools = r.pools(f)
		}
	}
	for _, f := range root {
		switch f.key {
		case "engines":
		case "rules":
			p.Rules = r.rules(f, p.Pools)
		case "budgets":
			p.Budgets = r.budgets(f)
		case "defaults":
			readOptions(r, f, "the defaults", defaultOptions, &p.Defaults)
		case "thresholds":
			readOptions(r, f, "the thresholds", thresholdOptions, &p.Thresholds)
		case "exploration":
			p.Exploration = r.exploration(f)
		case "summaries":
			p.Summaries = r.summaries(f)
		default:
			r.fault(f.keyNode, f.path, "unknown key; known are engines, rules, budgets, defaults, thresholds, exploration, summaries")
		}
	}
	r.checkWhole(tree.Docs[0].Body, &p)
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b Fault) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return nil, r.faults
	}
	return &p, nil
}

// checkWhole finds what only the whole policy shows: no pool, no default, rules that can't be reached, names used twice.
func (r *reader) checkWhole(root ast.Node, p *Policy) {
	if len(p.Pools) == 0 {
		r.fault(root, "engines", "a policy needs at least one engine to route to")
	}
	seen := map[string]int{}
	catchAll := ""
	for i, rule := range p.Rules {
		path := fmt.Sprintf("rules[%d]", i)
		at := &place{line: rule.Line, column: 5}
		if line, ok := seen[rule.Name]; ok && rule.Name != "" {
			r.faultAt(at, path, fmt.Sprintf("the name %q is used by the rule in line %d already", rule.Name, line))
		}
		seen[rule.Name] = rule.Line
		if catchAll != "" {
			r.faultAt(at, path, fmt.Sprintf("unreachable: rule %q above has no condition and takes everything", catchAll))
		}
		if rule.When.Always() && catchAll == "" {
			catchAll = rule.Name
		}
	}
	if catchAll == "" {
		r.fault(root, "rules", "no default: the last rule must have no `when`, e.g. `- name: default` with `route: auto`")
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
