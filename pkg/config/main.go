package config

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/telemetry/buildinfo"
)

// Program is a service's binary: what it is called, how it is configured and what it does.
type Program[T any] struct {
	Service string // "router"; the binary is pointsman-router
	Default T
	Run     func(ctx context.Context, cfg T) error
	// Follow is Run for a service that takes changes over while it runs: again loads the configuration anew.
	Follow func(ctx context.Context, cfg T, again func() (T, error)) error

	// What a process gives; Main fills in those of this one where they are nil.
	Args    []string // without the program's name
	Environ []string
	Stdout  io.Writer
	Stderr  io.Writer
}

// Main parses flags, loads the configuration and runs the service until a signal ends it. What it returns is the
// process's exit code: see the lifecycle package.
func Main[T any](p Program[T]) int {
	p.fill()
	var in invocation
	flags := p.flags(&in)
	switch err := flags.Parse(p.Args); {
	case errors.Is(err, flag.ErrHelp):
		return lifecycle.ExitOK
	case err != nil:
		return lifecycle.ExitUsage // the flag package has told why
	case flags.NArg() > 0:
		p.complain(fmt.Errorf("unexpected argument %q: there are only flags", flags.Arg(0)))
		return lifecycle.ExitUsage
	}
	if in.version {
		fmt.Fprintf(p.Stdout, "pointsman-%s %s\n", p.Service, buildinfo.Read())
		return lifecycle.ExitOK
	}
	if in.probe != "" {
		if err := probe(in.probe); err != nil {
			p.complain(err)
			return lifecycle.ExitRuntime
		}
		return lifecycle.ExitOK
	}
	if in.describe {
		if err := (Section{Service: p.Service, Default: p.Default}).Write(p.Stdout); err != nil {
			p.complain(err)
			return lifecycle.ExitRuntime
		}
		return lifecycle.ExitOK
	}
	load := func() (*Loaded[T], error) {
		return Load(p.Default, Options{Service: p.Service, File: in.file, Environ: p.Environ, Set: in.set})
	}
	loaded, err := load()
	if err != nil {
		p.complain(err)
		return lifecycle.ExitUsage
	}
	for _, warning := range loaded.Warnings {
		p.complain(fmt.Errorf("warning: %s", warning))
	}
	switch {
	case in.print:
		err = loaded.Print(p.Stdout)
	case in.check:
		_, err = fmt.Fprintf(p.Stdout, "pointsman-%s: the configuration is valid\n", p.Service)
	default:
		ctx, release := lifecycle.SignalContext(context.Background())
		defer release()
		if p.Run != nil {
			err = p.Run(ctx, loaded.Config)
			break
		}
		err = p.Follow(ctx, loaded.Config, func() (cfg T, err error) {
			loaded, err := load()
			if err == nil {
				cfg = loaded.Config
			}
			return cfg, err
		})
	}
	if err != nil {
		p.complain(err)
	}
	return lifecycle.ExitCode(err)
}

type invocation struct {
	file, probe                     string
	set                             []string
	check, print, describe, version bool
}

func (p *Program[T]) fill() {
	if p.Args == nil {
		p.Args = os.Args[1:]
	}
	if p.Environ == nil {
		p.Environ = os.Environ()
	}
	if p.Stdout == nil {
		p.Stdout = os.Stdout
	}
	if p.Stderr == nil {
		p.Stderr = os.Stderr
	}
}

func (p *Program[T]) flags(in *invocation) *flag.FlagSet {
	flags := flag.NewFlagSet("pointsman-"+p.Service, flag.ContinueOnError)
	flags.SetOutput(p.Stderr)
	flags.StringVar(&in.file, "config", p.configFile(), "YAML `file` to load (or "+EnvPrefix(p.Service)+configEnv+")")
	flags.Func("set", "set a key of the configuration, as `key=value`; may be repeated", func(pair string) error {
		in.set = append(in.set, pair)
		return nil
	})
	flags.BoolVar(&in.check, "check-config", false, "load and validate the configuration, then exit")
	flags.BoolVar(&in.print, "print-config", false, "print the configuration in effect with secrets redacted, then exit")
	flags.BoolVar(&in.describe, "describe-config", false, "list every key with its type, default, variable and meaning (Markdown), then exit")
	flags.BoolVar(&in.version, "version", false, "print the version, then exit")
	flags.StringVar(&in.probe, "probe", "", "ask the `url` of a running service (its /readyz), exit 0 if it answers that it is ready, 1 if not; "+
		"for health checks in images that have no curl")
	flags.Usage = func() {
		fmt.Fprintf(p.Stderr, "usage: pointsman-%s [flags]\n\n", p.Service)
		flags.PrintDefaults()
		fmt.Fprintf(p.Stderr, "\nEvery key can also be set by a variable %s<KEY>; -describe-config lists them.\n", EnvPrefix(p.Service))
	}
	return flags
}

func (p *Program[T]) configFile() string {
	for _, variable := range p.Environ {
		if file, ok := strings.CutPrefix(variable, EnvPrefix(p.Service)+configEnv+"="); ok {
			return file
		}
	}
	return ""
}

// complain writes each of several joined errors on a line of its own, so that editors find the positions.
func (p *Program[T]) complain(err error) {
	for _, e := range flatten(err) {
		fmt.Fprintf(p.Stderr, "pointsman-%s: %v\n", p.Service, e)
	}
}
