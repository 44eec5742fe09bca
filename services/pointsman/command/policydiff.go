package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pointsman/pointsman/pkg/contrast"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/replay"
)

type policyDiffCmd struct {
	A string `arg:"" help:"The policy of today." type:"existingfile"`
	B string `arg:"" help:"The policy of tomorrow." type:"existingfile"`
	recordFlags
	ExitCode bool   `help:"Exit with code 4 if they differ."`
	Samples  int    `help:"How many requests to tell in words, one of each way to differ." default:"5"`
	Output   string `help:"text, json, or markdown for a pull request." default:"text" enum:"text,json,markdown" short:"o"`
}

// Help says what is compared.
func (policyDiffCmd) Help() string {
	return `Says where the texts of two policies differ, and which requests they treat differently: recorded ones with --data or --brokers,
else made-up ones around the thresholds of both policies.

Exit codes: 0 done; 1 it could not be done; 2 wrong flags or a policy with faults; 4 they differ, with --exit-code.`
}

// policyDiff is what two policies treat differently.
type policyDiff struct {
	A       string            `json:"a"`
	B       string            `json:"b"`
	Changes []contrast.Change `json:"changes"`
	// MadeUp says that the requests were made up; Unable are facts that rules test and that could not be.
	MadeUp   bool          `json:"madeUp"`
	Unable   []string      `json:"unable,omitempty"`
	Requests replay.Report `json:"requests"`
}

// Run compares.
func (c *policyDiffCmd) Run(ctx context.Context, s *streams) error {
	a, err := loadPolicy(c.A)
	if err != nil {
		return err
	}
	b, err := loadPolicy(c.B)
	if err != nil {
		return err
	}
	d := policyDiff{A: c.A, B: c.B}
	if d.Changes, err = contrast.Structure(a, b); err != nil {
		return err
	}
	if err := c.requests(ctx, s, a, b, &d); err != nil {
		return err
	}
	for _, change := range d.Changes {
		d.Requests.PolicyChanges = append(d.Requests.PolicyChanges, change.String())
	}
	d.Requests.BeforeName, d.Requests.AfterName = baseName(c.A), baseName(c.B)
	if err := d.print(s, c.Output); err != nil {
		return err
	}
	if !c.ExitCode {
		return nil
	}
	if len(d.Changes) > 0 || d.Requests.Changed > 0 {
		return &lifecycle.LimitError{Err: fmt.Errorf("the policies differ: %d changes in the text, and %d of %d requests lead elsewhere",
			len(d.Changes), d.Requests.Changed, d.Requests.Decisions)}
	}
	return nil
}

// requests compares what the two policies decide.
func (c *policyDiffCmd) requests(ctx context.Context, s *streams, a, b *policy.Policy, d *policyDiff) (err error) {
	opts := replay.Options{Against: a, Policy: b, Tenants: c.Tenant, Fingerprints: c.Fingerprint, Samples: samples(c.Samples)}
	if c.given() {
		d.Requests, err = c.replay(ctx, s, &opts)
		return err
	}
	if c.chosen() {
		return &lifecycle.UsageError{Err: errors.New("--prefix, --from, --to, --tenant and --fingerprint choose recorded requests: say where they are, with --data or --brokers")}
	}
	made, unable := contrast.Grid(a, b)
	run := replay.NewRun(replay.Options{Against: a, Policy: b, Samples: samples(c.Samples)})
	for _, m := range made {
		run.MadeUp(m.Input, m.Facts)
	}
	d.MadeUp, d.Unable, d.Requests = true, unable, run.Report()
	return nil
}

func (d policyDiff) print(s *streams, output string) error {
	var b strings.Builder
	switch output {
	case "json":
		data, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the differences: %w", err)
		}
		b.Write(append(data, '\n'))
	case "markdown":
		b.WriteString(d.Requests.Markdown())
	default:
		b.WriteString(d.Requests.Text())
	}
	if output != "json" && len(d.Changes) == 0 {
		b.WriteString("\nThe texts say the same.\n")
	}
	if output != "json" && len(d.Unable) > 0 {
		fmt.Fprintf(&b, "\nNot varied, though rules test it: %s.\n", strings.Join(d.Unable, ", "))
	}
	if _, err := s.out.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("writing the differences: %w", err)
	}
	return nil
}
