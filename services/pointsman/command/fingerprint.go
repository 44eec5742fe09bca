package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/querylog"
)

type fingerprintCmd struct {
	Files   []string `arg:"" optional:"" help:"Query logs; - or none reads standard input." type:"path"`
	Input   string   `help:"sql: statements between semicolons or what DELIMITER says; jsonl: one object a line with sql, and if wanted dialect and id." default:"sql" enum:"sql,jsonl"`
	Dialect string   `help:"Dialect of statements that do not name their own: auto, mysql, doris, starrocks, tidb, trino, presto, spark, hive, postgres, clickhouse, dremio, ansi or duckdb." default:"auto"`
	Top     int      `help:"Instead of a line for each statement, the N most frequent fingerprints with count, share and an example." placeholder:"N"`
}

// Run fingerprints the logs, one after the other.
func (c *fingerprintCmd) Run(s *streams) error {
	dialect, err := fingerprint.ParseDialect(c.Dialect)
	if err != nil {
		return fmt.Errorf("--dialect: %w", err)
	}
	files := c.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	in, total, err := c.open(s, files)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	opts := querylog.Options{Input: querylog.Format(c.Input), Dialect: dialect, Top: c.Top}
	if s.terminal && total > progressFrom {
		bar := progressbar.NewOptions64(total, progressbar.OptionSetWriter(s.err), progressbar.OptionShowBytes(true),
			progressbar.OptionSetDescription("reading"), progressbar.OptionClearOnFinish())
		opts.Progress = func(bytes int) { _ = bar.Add(bytes) }
		defer func() { _ = bar.Finish() }()
	}
	result, err := querylog.Run(in, s.out, opts)
	if err != nil {
		return err
	}
	return c.bad(result.Bad)
}

// bad says how many lines were no statement, and where they are named.
func (c *fingerprintCmd) bad(lines int64) error {
	where := "each is named in the output"
	if c.Top > 0 {
		where = "without --top each is named in the output"
	}
	switch lines {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 line holds no statement; %s", where)
	}
	return fmt.Errorf("%d lines hold no statement; %s", lines, where)
}

// progressFrom is the size from which reading takes long enough to be shown.
const progressFrom = 16 << 20

// newline keeps a log that ends without one from running into the next.
func newline() io.Reader { return strings.NewReader("\n") }

// logs reads several inputs as one.
type logs struct {
	io.Reader
	open []io.Closer
}

// Close closes the files.
func (l *logs) Close() error {
	for _, c := range l.open {
		_ = c.Close()
	}
	return nil
}

// open opens the inputs and sums their sizes; an input without a size makes the sum unknown (-1).
func (c *fingerprintCmd) open(s *streams, files []string) (io.ReadCloser, int64, error) {
	l, readers, total := &logs{}, []io.Reader{}, int64(0)
	for _, name := range files {
		if name == "-" {
			readers, total = append(readers, s.in, newline()), -1
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			_ = l.Close()
			return nil, 0, fmt.Errorf("opening the log: %w", err)
		}
		l.open, readers = append(l.open, f), append(readers, f, newline())
		if info, err := f.Stat(); err == nil && total >= 0 {
			total += info.Size()
		}
	}
	l.Reader = io.MultiReader(readers...)
	return l, total, nil
}
