// Package scenario tests a policy: cases in YAML say what a request looks like and what is known, and where it must go.
//
// It is core. A case becomes an input of route.Decide, the same that routers decide on, and the decision is compared with what
// the case expects. Reading files and printing is the command's business.
package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/route"
)

// File is a file of cases.
type File struct {
	// Policy is the policy's file, relative to this one; the command may name another.
	Policy string `yaml:"policy"`
	Cases  []Case `yaml:"cases"`
}

// Case is one request with what must become of it.
type Case struct {
	Name string `yaml:"name"`
	// SQL is read for its shape as a router would; empty is a small read.
	SQL string `yaml:"sql"`
	// Request holds further fields of the request.
	Request Request `yaml:"request"`
	// Facts are what rules see, by their names in the policy. They are given after all else. `unknown` makes one missing.
	Facts map[string]any `yaml:"facts"`
	// Signals says what is known of the pools when no fact says otherwise: idle (the default), or none.
	Signals string `yaml:"signals"`
	// Failed are the pools where earlier attempts failed.
	Failed []string `yaml:"failed"`
	Expect Expect   `yaml:"expect"`

	// Line is where the case stands.
	Line int `yaml:"-"`
}

// Request are the fields of a request, by their names in its JSON.
type Request struct {
	Tenant         string   `yaml:"tenant"`
	User           string   `yaml:"user"`
	Tags           []string `yaml:"tags"`
	Dataset        string   `yaml:"dataset"`
	QueryType      string   `yaml:"queryType"`
	Dialect        string   `yaml:"dialect"`
	Catalog        string   `yaml:"catalog"`
	Schema         string   `yaml:"schema"`
	EngineHint     string   `yaml:"engineHint"`
	ResourceHint   string   `yaml:"resourceHint"`
	SLASeconds     *float64 `yaml:"slaSeconds"`
	TimeoutSeconds *float64 `yaml:"timeoutSeconds"`
	Priority       int      `yaml:"priority"`
	Session        *Session `yaml:"session"`
}

// Session is the request's session.
type Session struct {
	ID    string `yaml:"id"`
	Class string `yaml:"class"`
}

// Expect is what must become of a request; what is left out is not looked at.
type Expect struct {
	// Rule is the rule that decides, Kind route or reject, Pool where it goes.
	Rule string `yaml:"rule"`
	Kind string `yaml:"kind"`
	Pool string `yaml:"pool"`
	// Reason is the code of one of the decision's reasons.
	Reason string `yaml:"reason"`
	// Tags are all the tags that rules set.
	Tags []string `yaml:"tags"`
	// Notify says whether the client is told.
	Notify  *bool  `yaml:"notify"`
	Verdict string `yaml:"verdict"`
}

func (e Expect) nothing() bool {
	return e.Rule == "" && e.Kind == "" && e.Pool == "" && e.Reason == "" && e.Tags == nil && e.Notify == nil && e.Verdict == ""
}

// Result is what became of a case.
type Result struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	// Differences are what was not as expected; none means that the case passes.
	Differences []Difference `json:"differences,omitempty"`
	// Why explains the decision of a case that fails.
	Why string `json:"why,omitempty"`
}

// Passed reports whether all was as expected.
func (r Result) Passed() bool { return len(r.Differences) == 0 }

// Difference is one thing that was not as expected.
type Difference struct {
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// String says the difference in words.
func (d Difference) String() string {
	return fmt.Sprintf("%-7s want %s, got %s", d.What, cmp.Or(d.Want, "none"), cmp.Or(d.Got, "none"))
}

// Read reads a file of cases. All its faults are listed.
func Read(name string, text []byte) (File, error) {
	var f File
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&f); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := f.lines(text); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	if len(f.Cases) == 0 {
		errs = append(errs, fmt.Errorf("%s: there are no cases", name))
	}
	seen := map[string]bool{}
	for _, c := range f.Cases {
		fault := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s:%d: %s", name, c.Line, fmt.Sprintf(format, args...)))
		}
		if c.Name == "" {
			fault("a case has no name")
		} else if seen[c.Name] {
			fault("the name %q is used twice", c.Name)
		}
		seen[c.Name] = true
		if c.Expect.nothing() {
			fault("the case expects nothing: say rule, kind, pool, reason, tags, notify or verdict")
		}
		if c.Signals != "" && c.Signals != "idle" && c.Signals != "none" {
			fault("signals: %q is not idle or none", c.Signals)
		}
		if k := c.Expect.Kind; k != "" && k != string(event.Route) && k != string(event.Reject) {
			fault("expect.kind: %q is not route or reject", k)
		}
	}
	return f, errors.Join(errs...)
}

// lines finds where each case stands.
func (f *File) lines(text []byte) error {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return err
	}
	path, err := yaml.PathString("$.cases")
	if err != nil {
		return err
	}
	node, err := path.FilterFile(tree)
	if err != nil {
		return nil // there are none
	}
	list, ok := node.(*ast.SequenceNode)
	for i := range f.Cases {
		if ok && i < len(list.Values) {
			f.Cases[i].Line = list.Values[i].GetToken().Position.Line
		}
	}
	return nil
}

// Run decides the cases with a policy.
func Run(p *policy.Policy, f File) []Result {
	out := make([]Result, len(f.Cases))
	for i, c := range f.Cases {
		out[i] = run(p, c)
	}
	return out
}

func run(p *policy.Policy, c Case) Result {
	r := Result{Name: c.Name, Line: c.Line}
	in, err := Input(p, c)
	if err != nil {
		r.Differences = []Difference{{What: "case", Want: "one that can be made", Got: err.Error()}}
		return r
	}
	d := route.Decide(in)
	differ := func(what, want, got string) {
		r.Differences = append(r.Differences, Difference{What: what, Want: want, Got: got})
	}
	e := c.Expect
	for _, x := range []struct{ what, want, got string }{
		{"rule", e.Rule, d.Rule}, {"kind", e.Kind, string(d.Kind)}, {"pool", e.Pool, d.Cluster}, {"verdict", e.Verdict, d.Verdict},
	} {
		if x.want != "" && x.want != x.got {
			differ(x.what, x.want, x.got)
		}
	}
	var codes []string
	for _, reason := range d.Reasons {
		codes = append(codes, reason.Code)
	}
	if e.Reason != "" && !slices.Contains(codes, e.Reason) {
		differ("reason", e.Reason, strings.Join(codes, ", "))
	}
	if e.Tags != nil && !slices.Equal(e.Tags, d.RuleTags) {
		differ("tags", strings.Join(e.Tags, ", "), strings.Join(d.RuleTags, ", "))
	}
	if e.Notify != nil && *e.Notify != d.Notify {
		differ("notify", fmt.Sprint(*e.Notify), fmt.Sprint(d.Notify))
	}
	if !r.Passed() {
		r.Why = route.ExplainInput(in).Text
	}
	return r
}
