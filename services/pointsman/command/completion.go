package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish; taken from $SHELL if empty." optional:"" enum:"bash,zsh,fish," default:""`
}

// Run prints the lines that make the shell ask this binary for completions.
func (c *completionCmd) Run(s *streams) error {
	shell := c.Shell
	if shell == "" {
		shell = filepath.Base(os.Getenv("SHELL"))
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this binary: %w", err)
	}
	script, ok := completionScripts[shell]
	if !ok {
		return fmt.Errorf("no completion for the shell %q; name one of bash, zsh, fish", shell)
	}
	_, err = fmt.Fprintln(s.out, strings.ReplaceAll(script, "SELF", self))
	return err
}

var completionScripts = map[string]string{
	"bash": "complete -C SELF pointsman",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -C SELF pointsman",
	"fish": "complete -c pointsman -f -a '(env COMP_LINE=(commandline -cp) COMP_POINT=(string length (commandline -cp)) SELF)'",
}
