package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/pointsman/pointsman/loadgen/tpch"
)

type dataCommand struct {
	Out      string       `required:"" placeholder:"DIR" help:"Folder to make. It appears whole or not at all; a second run with the same arguments does nothing."`
	Scale    float64      `default:"0.05" help:"Scale factor: 1 has 1.5 million orders, about 6 million line items and 30 million events."`
	Seed     uint64       `default:"1" help:"Seed: the same scale and seed give the same bytes."`
	Tables   []tpch.Table `placeholder:"TABLE" help:"Only these tables: region, nation, supplier, customer, part, partsupp, orders, lineitem, events."`
	Parallel int          `default:"0" help:"Files made at a time; 0 means one for each processor."`
	Replace  bool         `help:"Replace a data folder that was made with other arguments."`
}

func (c *dataCommand) Run(s streams) error {
	start := time.Now()
	m, err := tpch.Generate(s.ctx, tpch.Options{
		Dir: c.Out, Scale: c.Scale, Seed: c.Seed, Tables: c.Tables, Parallel: c.Parallel, Replace: c.Replace, Progress: bar(s.err, "rows"),
	})
	if err != nil {
		return err
	}
	for _, t := range m.Tables {
		fmt.Fprintf(s.out, "%-9s %10d rows %12d bytes %3d files\n", t.Name, t.Rows, t.Bytes, len(t.Files))
	}
	fmt.Fprintf(s.out, "%-9s %10d rows %12d bytes in %s, %s\n", "all", m.Rows, m.Bytes, c.Out, time.Since(start).Round(time.Millisecond))
	return nil
}

// bar returns a progress callback that draws on a terminal, nil when there is none.
func bar(w io.Writer, what string) func(done, total int64) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	var b *progressbar.ProgressBar
	return func(done, total int64) {
		if b == nil {
			b = progressbar.NewOptions64(total, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
				progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = b.Set64(min(done, total)) // the total is an estimate, and a bar refuses to go past it
	}
}

type ddlCommand struct {
	Dir      string `required:"" placeholder:"DIR" help:"Data folder made by loadgen data."`
	Database string `default:"tpch" help:"Database to make the views in."`
}

func (c *ddlCommand) Run(s streams) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("resolving folder: %w", err)
	}
	m, err := tpch.Load(dir)
	if err != nil {
		return err
	}
	statements, err := tpch.ViewStatements(c.Database, dir, m)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		fmt.Fprintf(s.out, "%s;\n", statement)
	}
	return nil
}
