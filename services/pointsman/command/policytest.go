package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/scenario"
)

type policyTestCmd struct {
	Files  []string `arg:"" help:"Policy files with cases beside them (x.yaml and x.test.yaml), or files of cases." type:"existingfile"`
	Policy string   `help:"Run the cases with this policy instead of theirs." placeholder:"FILE" type:"existingfile"`
	Output string   `help:"text or json." default:"text" enum:"text,json" short:"o"`
}

// Help says what a case looks like.
func (policyTestCmd) Help() string {
	return `A case is a request, what is known of it, and what must become of it; it is decided as a router would:

    cases:
      - name: a dashboard spills when the queue is long
        sql: SELECT region, sum(amount) FROM sales GROUP BY region
        request: {tenant: sales, tags: [interactive], slaSeconds: 5}
        facts: {estimated_bytes: 200 GB, interactive_queue_wait_ms: 2500}
        expect: {rule: interactive_overloaded_spill, pool: batch, notify: true}

All pools are idle unless ` + "`signals: none`" + ` or a fact says otherwise; a fact that is ` + "`unknown`" + ` is missing.

Exit codes: 0 all passed; 1 some failed; 2 wrong flags, or a policy or a file of cases with faults.`
}

// casesSuffix tells files of cases from policies.
const casesSuffix = ".test"

// testResult is what became of the cases of one file.
type testResult struct {
	File   string            `json:"file"`
	Policy string            `json:"policy"`
	Passed int               `json:"passed"`
	Failed []scenario.Result `json:"failed,omitempty"`
}

// Run runs the cases; one that fails makes the exit code 1.
func (c *policyTestCmd) Run(s *streams) error {
	var results []testResult
	passed, failed := 0, 0
	for _, file := range c.Files {
		r, err := c.file(file)
		if err != nil {
			return err
		}
		passed, failed = passed+r.Passed, failed+len(r.Failed)
		results = append(results, r)
	}
	if c.Output == "json" {
		if err := printJSON(s, results); err != nil {
			return err
		}
	} else {
		printTests(s, results)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cases failed", failed, passed+failed)
	}
	return nil
}

func (c *policyTestCmd) file(file string) (testResult, error) {
	cases, policyFile := file, c.Policy
	ext := filepath.Ext(file)
	if stem := strings.TrimSuffix(file, ext); !strings.HasSuffix(stem, casesSuffix) {
		cases = stem + casesSuffix + ext
		if policyFile == "" {
			policyFile = file
		}
	}
	text, err := os.ReadFile(cases)
	if err != nil {
		return testResult{}, &lifecycle.UsageError{Err: fmt.Errorf("reading the cases beside the policy: %w", err)}
	}
	f, err := scenario.Read(cases, text)
	if err != nil {
		return testResult{}, &lifecycle.UsageError{Err: fmt.Errorf("the cases have faults:\n%w", err)}
	}
	switch {
	case policyFile != "":
	case f.Policy != "":
		policyFile = filepath.Join(filepath.Dir(cases), f.Policy)
	default:
		policyFile = strings.TrimSuffix(strings.TrimSuffix(cases, ext), casesSuffix) + ext
	}
	p, err := loadPolicy(policyFile)
	if err != nil {
		return testResult{}, err
	}
	out := testResult{File: cases, Policy: policyFile}
	for _, r := range scenario.Run(p, f) {
		if r.Passed() {
			out.Passed++
		} else {
			out.Failed = append(out.Failed, r)
		}
	}
	return out, nil
}

func printTests(s *streams, results []testResult) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format+"\n", args...) }
	for _, r := range results {
		for _, f := range r.Failed {
			say("FAIL %s:%d: %s", r.File, f.Line, f.Name)
			for _, d := range f.Differences {
				say("  %s", d)
			}
			for line := range strings.Lines(f.Why) {
				say("    | %s", strings.TrimRight(line, "\n"))
			}
		}
		say("%s: %d of %d cases passed with %s", r.File, r.Passed, r.Passed+len(r.Failed), r.Policy)
	}
}
