// Command gen writes docs/config.md: it asks each service's binary to describe its configuration, so that a new service
// is on the page without anybody thinking of it.
package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pointsman/pointsman/pkg/config"
)

//go:generate go run . ../config.md

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docs/gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: gen FILE, run in docs/gen")
	}
	programs, err := filepath.Glob("../../services/*/cmd/pointsman-*/main.go")
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		return fmt.Errorf("no services found: run it in docs/gen")
	}
	var page bytes.Buffer
	page.WriteString(config.ReferenceHead)
	for _, program := range programs { // sorted by Glob
		cmd := exec.Command("go", "run", filepath.ToSlash(filepath.Dir(program)), "-describe-config")
		cmd.Stdout, cmd.Stderr = &page, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("asking %s: %w", filepath.Dir(program), err)
		}
	}
	return os.WriteFile(args[0], page.Bytes(), 0o644)
}
