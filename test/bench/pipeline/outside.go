package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
)

// outside stands in for a test, for a package that starts servers for tests only.
type outside struct {
	testing.TB // never called: what is used is below

	dir     string
	cleanup []func()
	failed  bool
}

// gaveUp is what a fatal end of the test panics with.
type gaveUp struct{ error }

// do calls f, and returns what it says when it gives up.
func (o *outside) do(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case gaveUp:
			err = e.error
		default:
			panic(e)
		}
	}()
	f()
	return nil
}

func (o *outside) end() error {
	for _, f := range slices.Backward(o.cleanup) {
		f()
	}
	o.cleanup = nil
	return nil
}

// Helper does nothing.
func (o *outside) Helper() {}

// Cleanup notes what to do at the end.
func (o *outside) Cleanup(f func()) { o.cleanup = append(o.cleanup, f) }

// Context is never ended: the clean-up ends what was started.
func (o *outside) Context() context.Context { return context.Background() }

// Failed says whether anything was wrong.
func (o *outside) Failed() bool { return o.failed }

// TempDir makes a folder that goes with the benchmark's own.
func (o *outside) TempDir() string {
	dir, err := os.MkdirTemp(o.dir, "kafka-")
	if err != nil {
		o.Fatalf("%v", err)
	}
	return dir
}

// Logf tells people.
func (o *outside) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Errorf notes a failure.
func (o *outside) Errorf(format string, args ...any) {
	o.failed = true
	o.Logf(format, args...)
}

// Fatalf gives up.
func (o *outside) Fatalf(format string, args ...any) {
	o.failed = true
	panic(gaveUp{fmt.Errorf(format, args...)})
}

// Skipf gives up too: whoever asked for the real thing wants to know that there is none.
func (o *outside) Skipf(format string, args ...any) {
	panic(gaveUp{fmt.Errorf(format, args...)})
}
