// Package querylog fingerprints the statements of a query log: it reads a stream of SQL or of JSON lines, and writes one
// JSON line for every statement, or a summary of them all.
//
// It opens nothing and knows no command line; that is the command's part. What a statement means is said by packages
// fingerprint and shape.
package querylog

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// Format is how a log is written.
type Format string

// The formats.
const (
	SQL   Format = "sql"   // statements between semicolons or what DELIMITER says
	JSONL Format = "jsonl" // one object a line: sql, and if wanted dialect and id
)

// Options say how a log is read and what is written.
type Options struct {
	Input Format
	// Dialect is that of statements which do not name their own.
	Dialect lex.Dialect
	// Top asks for a summary of that many fingerprints instead of a line for every statement.
	Top int
	// Workers bounds the goroutines that read statements; zero is one for each processor.
	Workers int
	// Progress is told how many bytes were read since it was told last. It may be nil.
	Progress func(bytes int)
}

// Validate reports every option out of range.
func (o Options) Validate() error {
	var errs []error
	if o.Input != SQL && o.Input != JSONL {
		errs = append(errs, fmt.Errorf("query log: input %q: want %s or %s", o.Input, SQL, JSONL))
	}
	if o.Top < 0 {
		errs = append(errs, fmt.Errorf("query log: top %d: want 0 or more", o.Top))
	}
	if o.Workers < 0 {
		errs = append(errs, fmt.Errorf("query log: workers %d: want 0 or more", o.Workers))
	}
	return errors.Join(errs...)
}

// Result counts what a run has read.
type Result struct {
	Bytes      int64
	Statements int64
	// Bad counts the lines that are no object with a statement; each has a line with its error in the output.
	Bad int64
}

// Run reads a log to its end and writes what the options ask for. Lines come out in the order of the statements.
func Run(r io.Reader, w io.Writer, o Options) (Result, error) {
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := newPipeline(o, workers)
	return p.run(r, w)
}
