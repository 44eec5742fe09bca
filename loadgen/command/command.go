// Package command is the command line of loadgen: it turns flags into calls of the packages tpch, workload and publish
// and prints what they return. Everything that decides something is in those packages.
package command

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
)

// tree is the command tree.
type tree struct {
	Data  dataCommand  `cmd:"" help:"Generate TPC-H-shaped tables and an events table as Parquet files, the same for the same scale and seed."`
	DDL   ddlCommand   `cmd:"" name:"ddl" help:"Print the ClickHouse statements that make a database of views over a data folder."`
	Run   runCommand   `cmd:"" help:"Publish the demo's workload, or a constant rate, to Kafka at its own times, and report how punctual that was."`
	Print printCommand `cmd:"" help:"Print the workload, one task a line, as kcat -P takes it."`
}

// streams are where a command writes: results to out, progress and reports to err.
type streams struct {
	ctx      context.Context
	out, err io.Writer
}

// Main parses the arguments, runs the command they name and returns the exit code: 0, 1 for a failure, 2 for bad usage.
func Main(ctx context.Context, args []string, out, errOut io.Writer) int {
	var t tree
	exit := -1
	parser, err := kong.New(&t,
		kong.Name("loadgen"),
		kong.Description("Makes the data and the workload of the pointsman demo. The same flags and seed give the same bytes and the same tasks."),
		kong.Writers(out, errOut),
		kong.Exit(func(code int) { exit = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(errOut, "loadgen:", err)
		return 1
	}
	parsed, err := parser.Parse(args)
	if exit >= 0 { // --help was printed
		return exit
	}
	if err != nil {
		fmt.Fprintf(errOut, "loadgen: %v\nSee loadgen --help.\n", err)
		return 2
	}
	if err := parsed.Run(streams{ctx: ctx, out: out, err: errOut}); err != nil {
		fmt.Fprintln(errOut, "loadgen:", err)
		return 1
	}
	return 0
}
