package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/pointsman/pointsman/pkg/policy"
)

type policyCmd struct {
	Lint    policyLintCmd    `cmd:"" help:"List every fault of policy files, with line and column."`
	Explain policyExplainCmd `cmd:"" help:"Say in words what a policy does: pools, thresholds, latches, rules in order."`
	Test    policyTestCmd    `cmd:"" help:"Run the cases beside policies: requests, and where each must go."`
	Schema  policySchemaCmd  `cmd:"" help:"Print the JSON Schema of policies, for editors."`
	Diff    policyDiffCmd    `cmd:"" help:"Say what two policies treat differently."`
}

type policyLintCmd struct {
	Files  []string `arg:"" help:"Policy files." type:"existingfile"`
	Output string   `help:"text or json." default:"text" enum:"text,json" short:"o"`
	Strict bool     `help:"Take warnings for faults."`
}

// Help says what is found, and the exit codes.
func (policyLintCmd) Help() string {
	return `A policy with any fault is refused as a whole by a router, so all are listed: what is no YAML, unknown keys and facts, values out of
range, rules that can't be reached or never match, a missing default, latches that would go on and off, expressions that don't compile.
Warnings are what is probably not meant: thresholds and latches that nothing uses.

Exit codes: 0 no faults; 1 faults; 2 wrong flags.`
}

// lintResult is what was found in one file.
type lintResult struct {
	File     string           `json:"file"`
	OK       bool             `json:"ok"`
	Hash     string           `json:"hash,omitempty"`
	Pools    int              `json:"pools,omitempty"`
	Rules    int              `json:"rules,omitempty"`
	Faults   policy.FaultList `json:"faults,omitempty"`
	Warnings policy.FaultList `json:"warnings,omitempty"`
}

// Run checks the files; one with faults makes the exit code 1.
func (c *policyLintCmd) Run(s *streams) error {
	results, bad := make([]lintResult, 0, len(c.Files)), 0
	for _, file := range c.Files {
		r, err := lint(file)
		if err != nil {
			return err
		}
		r.OK = len(r.Faults) == 0 && (!c.Strict || len(r.Warnings) == 0)
		if !r.OK {
			bad++
		}
		results = append(results, r)
	}
	if err := c.print(s, results); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d policies have faults", bad, len(c.Files))
	}
	return nil
}

func lint(file string) (lintResult, error) {
	r := lintResult{File: file}
	text, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("reading the policy: %w", err)
	}
	p, err := policy.Load(file, text)
	if errors.As(err, &r.Faults) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.Hash, r.Pools, r.Rules, r.Warnings = p.Hash, len(p.Pools), len(p.Rules), p.Warnings
	return r, nil
}

func (c *policyLintCmd) print(s *streams, results []lintResult) error {
	if c.Output == "json" {
		return printJSON(s, results)
	}
	for _, r := range results {
		for _, f := range r.Faults {
			_, _ = fmt.Fprintln(s.out, f)
		}
		for _, w := range r.Warnings {
			_, _ = fmt.Fprintf(s.out, "%s:%d:%d: warning: %s: %s\n", w.File, w.Line, w.Column, w.Path, w.Message)
		}
		if len(r.Faults) == 0 {
			_, _ = fmt.Fprintf(s.out, "%s: ok, %d engines, %d rules, hash %s\n", r.File, r.Pools, r.Rules, r.Hash)
		}
	}
	return nil
}

func printJSON(s *streams, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	_, err = fmt.Fprintf(s.out, "%s\n", data)
	return err
}

type policyExplainCmd struct {
	File   string `arg:"" help:"Policy file." type:"existingfile"`
	Tenant string `help:"The policy as it is for this tenant."`
}

// Run prints the policy in words.
func (c *policyExplainCmd) Run(s *streams) error {
	p, err := loadPolicy(c.File)
	if err != nil {
		return err
	}
	if c.Tenant != "" {
		_, err = fmt.Fprint(s.out, p.For(c.Tenant).Describe())
		return err
	}
	_, err = fmt.Fprint(s.out, p.Describe())
	return err
}

type policySchemaCmd struct{}

// Help says how editors use it.
func (policySchemaCmd) Help() string {
	return `Editors with a YAML language server check and complete a policy that begins with

    # yaml-language-server: $schema=policy.schema.json

where policy.schema.json is this output. What a schema can't say, such as that a rule can't be reached, only lint finds.`
}

// Run prints the schema.
func (policySchemaCmd) Run(s *streams) error {
	_, err := s.out.Write(policy.Schema())
	return err
}
