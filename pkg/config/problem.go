package config

import (
	"errors"
	"fmt"
	"strings"
)

// Origin is where a value comes from. The zero Origin is the default that the program has.
type Origin struct {
	Source string // name of the file, "environment NAME" or "flag -set NAME"
	Line   int    // 1-based, 0 when the source has no lines
	Column int
}

// String is file:line:column, or as much of it as there is.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.Source
	}
	return fmt.Sprintf("%s:%d:%d", o.Source, o.Line, o.Column)
}

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Origin Origin
	Path   string // dotted key, empty for the whole
	Err    error
}

// Error starts with the position, as compilers write it, so that editors can jump there.
func (p *Problem) Error() string {
	parts := make([]string, 0, 3)
	if where := p.Origin.String(); where != "" {
		parts = append(parts, where)
	}
	if p.Path != "" {
		parts = append(parts, p.Path)
	}
	return strings.Join(append(parts, p.Err.Error()), ": ")
}

// Unwrap gives the error inside.
func (p *Problem) Unwrap() error { return p.Err }

// Invalid is what a Validate returns about one of its keys: the loader adds where the value came from.
// The path is relative to the struct that is validated.
func Invalid(path, format string, args ...any) error {
	return &invalid{path: path, err: fmt.Errorf(format, args...)}
}

type invalid struct {
	path string
	err  error
}

func (e *invalid) Error() string { return e.path + ": " + e.err.Error() }
func (e *invalid) Unwrap() error { return e.err }

// flatten takes errors apart that errors.Join has put together. What wraps several errors in a sentence of its own
// stays whole, or the sentence would be lost.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}
