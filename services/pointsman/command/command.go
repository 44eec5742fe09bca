// Package command is the command line of pointsman. Each command is a struct with its flags; the work is in other packages.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"
	"golang.org/x/term"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/telemetry/buildinfo"
	"github.com/pointsman/pointsman/services/pointsman/demo"
)

// cli is the tree of commands.
type cli struct {
	Up          upCmd          `cmd:"" help:"Run everything on embedded parts: broker, ClickHouse engines, the five services."`
	Embedded    embeddedCmd    `cmd:"" help:"Run the embedded parts alone, for services in processes of their own."`
	Explain     explainCmd     `cmd:"" help:"Say where a query would go, and why, without running it."`
	Replay      replayCmd      `cmd:"" help:"Make recorded decisions again, with another policy or their own, and say what differs."`
	Tasks       tasksCmd       `cmd:"" help:"List, show, cancel and follow tasks."`
	Budgets     budgetsCmd     `cmd:"" help:"Show what sessions and tenants have used of their budgets."`
	Engines     enginesCmd     `cmd:"" help:"Say which engines are configured, and what works against them."`
	Fingerprint fingerprintCmd `cmd:"" help:"Fingerprint the statements of a query log: identity, shape, tables, what prunes."`
	Policy      policyCmd      `cmd:"" help:"Check routing policies."`
	Topics      topicsCmd      `cmd:"" help:"Make the topics, compare them with what is declared, or look into them."`
	Dlq         dlqCmd         `cmd:"" help:"Look at dead letters, and send them back."`
	Migrate     migrateCmd     `cmd:"" help:"Bring the history's schema in ClickHouse up or down."`
	Completion  completionCmd  `cmd:"" help:"Print a completion script for a shell."`
	Version     versionCmd     `cmd:"" help:"Print the version."`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	terminal bool // err is a terminal
}

// Main runs a command line and returns the process's exit code.
func Main(args []string, in io.Reader, out, stderr io.Writer) int {
	var c cli
	exited, code := false, 0
	parser, err := kong.New(&c, kong.Name("pointsman"),
		kong.Description("Routes every SQL query to the engine, cluster, queue and resources that will meet its SLA, and says why."),
		kong.UsageOnError(), kong.Writers(out, stderr), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(n int) { exited, code = true, n }))
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "pointsman:", err)
		return 1
	}
	kongplete.Complete(parser, kongplete.WithPredictor("file", complete.PredictFiles("*"))) // ends the process when a shell asks
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pointsman: %s\nRun `pointsman --help` for what there is.\n", err)
		return 2
	}
	ctx, release := lifecycle.SignalContext(context.Background())
	defer release()
	s := &streams{in: in, out: out, err: stderr, terminal: isTerminal(stderr)}
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(s, k.Model); err != nil && !(follows(k.Command()) && isSignal(err)) {
		_, _ = fmt.Fprintln(stderr, "pointsman:", strings.TrimSpace(err.Error()))
		return max(1, lifecycle.ExitCode(err))
	}
	return 0
}

// follows reports whether a command goes on until somebody stops it. Any other that is stopped has not done what it was asked to.
func follows(command string) bool {
	return slices.ContainsFunc([]string{"up", "embedded", "topics tail", "tasks tail"}, func(c string) bool {
		return command == c || strings.HasPrefix(command, c+" ")
	})
}

// isSignal reports whether a command ended because the person asked it to.
func isSignal(err error) bool {
	var sig *lifecycle.SignalError
	if errors.Is(err, demo.ErrStopped) || errors.Is(err, errUnfinished) {
		return false // asked to, but what it was to show or to find out it has not
	}
	return errors.As(err, &sig) || errors.Is(err, context.Canceled)
}

// width is the width of the terminal that err is, 80 if it is none.
func (s *streams) width() int {
	if f, ok := s.err.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(s *streams) error {
	_, err := fmt.Fprintln(s.out, buildinfo.Read())
	return err
}
