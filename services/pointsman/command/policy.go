package command

import (
	"errors"
	"fmt"
	"os"

	"github.com/pointsman/pointsman/pkg/policy"
)

type policyCmd struct {
	Lint policyLintCmd `cmd:"" help:"List every fault of policy files, with line and column."`
	Diff policyDiffCmd `cmd:"" help:"Say what two policies treat differently."`
}

type policyLintCmd struct {
	Files []string `arg:"" help:"Policy files." type:"existingfile"`
}

// Run checks the files; one with faults makes the exit code 1.
func (c *policyLintCmd) Run(s *streams) error {
	bad := 0
	for _, file := range c.Files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading the policy: %w", err)
		}
		p, err := policy.Load(file, text)
		var faults policy.FaultList
		switch {
		case errors.As(err, &faults):
			bad++
			_, _ = fmt.Fprintln(s.out, faults.Error())
		case err != nil:
			return err
		default:
			_, _ = fmt.Fprintf(s.out, "%s: ok, %d engines, %d rules, hash %s\n", file, len(p.Pools), len(p.Rules), p.Hash)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d policies have faults", bad, len(c.Files))
	}
	return nil
}
