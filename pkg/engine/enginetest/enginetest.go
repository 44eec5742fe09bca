// Package enginetest is the suite that every engine adapter must pass: what the executor relies on when it submits, follows,
// stops and looks up attempts.
//
// An adapter's test starts a real engine, fills in a Fixture in that engine's dialect, and calls Exercise. What an engine can't
// do is left empty in the Fixture and skipped by name, so that a gap is seen in the test's output.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
)

// Fixture is an engine under test, in its own dialect.
type Fixture struct {
	// Record is the file below results in which the outcome is kept, Engine and Proof what the page of engines says of it. An
	// empty Record keeps nothing.
	Record, Engine, Proof string
	// Exceptions says, by a capability's name, why this engine can't have it. They are left out, and the page of engines says why. Whatever
	// is left out needs one.
	Exceptions map[string]string
	// Kind is the engine's kind, under which pkg/failure knows its codes.
	Kind string
	// Open makes a client of the engine. Two clients stand for two processes. The suite closes what it opens.
	Open func(t *testing.T) engine.Engine
	// Dead makes a client of an address at which nobody listens.
	Dead func(t *testing.T) engine.Engine

	// Addr is the address of the server, and OpenAt makes a client of another address, behind which it is: for engines that speak
	// over one TCP connection. Statements must be sent as they are.
	Addr   string
	OpenAt func(t *testing.T, addr string) engine.Engine
	// CutAt is how many bytes of Large's answer come through before it is cut: more than its first rows take. The default is 1 MiB.
	CutAt int
	// OwnNetwork takes the place of the suite's own test of broken connections, for engines that are sent a statement by one
	// request and told to start it by another.
	OwnNetwork func(t *testing.T)

	// One gives one row with the number 1, and reads at least one row.
	One string
	// Empty gives columns and no row.
	Empty string
	// NoResult is a statement without a result, such as a DDL statement that may be repeated.
	NoResult string
	// Types gives one row; Columns and Values are what it must be read as.
	Types   string
	Columns []event.Column
	Values  []any
	// Wrong names a table that does not exist, Syntax is no SQL.
	Wrong, Syntax string
	// Greedy needs more memory than MemoryLimit; GreedySettings go with it.
	Greedy         string
	MemoryLimit    int64
	GreedySettings map[string]string
	// Slow runs for at least twenty seconds unless it is stopped, and then gives a row.
	Slow string
	// Large gives LargeRows rows, many more than fit into the buffers between the engine and a reader.
	Large     string
	LargeRows int
	// Breaks gives some rows and then fails; BreaksClass is its class.
	Breaks      string
	BreaksClass failure.Class
	// Echo gives one row with one number, that of its %d. Empty leaves out what needs it.
	Echo string
	// Writes adds a row to what NoResult has made, and Written counts those rows: for engines that keep a read from writing.
	Writes, Written string
	// Explain is a statement of ten rows that the engine can explain; ExplainsRows says that it estimates their number.
	Explain      string
	ExplainsRows bool
	// Running is the server's own count of what runs there, for engines whose protocol does not tell it and whose Observe can't.
	Running func() (int, error)
	// GoneWithin is how long a cancelled query may still be counted by the engine; zero means a second.
	GoneWithin time.Duration
	// Setting is a statement that shows the value of a setting of a query, SettingName, and SettingValue is not its default.
	Setting, SettingName, SettingValue string
}

var serial atomic.Int64

// id is an attempt id as the executor makes them.
func id(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("t-%d-%d/1", time.Now().UnixNano(), serial.Add(1))
}

// capability is one thing that the suite asks for.
type capability struct {
	Name string
	// Means says in a few words what an engine has that passes.
	Means string
	can   func(f Fixture) bool // nil means always
	run   func(t *testing.T, f Fixture)
}

func slow(f Fixture) bool  { return f.Slow != "" }
func large(f Fixture) bool { return f.Large != "" }

// capabilities are the suite, in the order in which they are run.
var capabilities = []capability{
	{"Submit", "a row, a result without rows, and how many rows there were", nil, submit},
	{"NoResult", "statements without a result", func(f Fixture) bool { return f.NoResult != "" }, noResult},
	{"Types", "every type exact: 64 bits, decimals, NULL, instants", func(f Fixture) bool { return f.Types != "" }, types},
	{"Settings", "settings of a resource profile hold for one query only", func(f Fixture) bool { return f.Setting != "" }, settings},
	{"SemanticErrors", "errors of a statement are told as such, with their codes", nil, semanticErrors},
	{"MemoryLimit", "the engine enforces a memory limit per query", func(f Fixture) bool { return f.Greedy != "" }, memoryLimit},
	{"TimeLimit", "the engine enforces a time limit per query", slow, timeLimit},
	{"FailsMidway", "a failure behind the first rows is one, and no end", func(f Fixture) bool { return f.Breaks != "" }, failsMidway},
	{"GuardRanOut", "nothing leaves past the guard of the claim", nil, guardRanOut},
	{"FindAndKill", "another process finds a run by its attempt id, and kills it", slow, findAndKill},
	{"KillUnknown", "killing what is not there is no error", nil, killUnknown},
	{"HonestProgress", "progress is known or absent, never an invented zero", slow, honestProgress},
	{"DuplicateID", "one attempt id never runs twice at once", slow, duplicateID},
	{"CancelBeforeTheFirstAnswer", "a cancel stops the run at the server before it has answered", slow, cancelBeforeAnswer},
	{"CancelWhileReading", "a cancel stops the run while rows are read", large, cancelWhileReading},
	{"CloseWhileReading", "closing a result stops the run without reading the rest", large, closeWhileReading},
	{"ReaderGoesAway", "a reader that vanishes frees the engine", large, readerGoesAway},
	{"CountGoesBack", "the server's own count of running queries is back within a second of a cancel", slow, countGoesBack},
	{"ManyAtOnce", "many queries at once, each with its own answer", func(f Fixture) bool { return f.Echo != "" }, manyAtOnce},
	{"Explain", "a plan before anything runs, and what it says is known or absent", func(f Fixture) bool { return f.Explain != "" }, explain},
	{"ReadsDoNotWrite", "what was taken for a read can't write", func(f Fixture) bool { return f.Writes != "" }, readsDoNotWrite},
	{"LargeResult", "a large result is streamed at its reader's pace", large, largeResult},
	{"ClosingTheClientKillsNothingElse", "closing a client harms nobody else's queries", slow, closeClient},
	{"CanaryAndLoad", "a canary, and the engine's own load", nil, canaryAndLoad},
	{"Network", "connections that break, stand still or take too long", func(f Fixture) bool { return f.OpenAt != nil || f.OwnNetwork != nil }, network},
	{"DeadServer", "an engine that is down is told from one that knows nothing", func(f Fixture) bool { return f.Dead != nil }, deadServer},
}

// Exercise runs the suite.
func Exercise(t *testing.T, f Fixture) {
	results := map[string]Result{}
	for name := range f.Exceptions {
		require.True(t, slices.ContainsFunc(capabilities, func(c capability) bool { return c.Name == name }), "%s is no capability", name)
	}
	for _, c := range capabilities {
		ran := t.Run(c.Name, func(t *testing.T) {
			results[c.Name] = LeftOut
			if why := f.Exceptions[c.Name]; why != "" {
				t.Skip(why)
			}
			if c.can != nil && !c.can(f) {
				t.Skip("the fixture says that this engine can't do it")
			}
			c.run(t, f)
			results[c.Name] = Passed
		})
		if !ran {
			delete(results, c.Name)
		}
	}
	if !t.Failed() {
		f.record(t, results)
	}
}

func (f Fixture) open(t *testing.T) engine.Engine {
	t.Helper()
	e := f.Open(t)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// failedAs checks an error's type and class.
func (f Fixture) failedAs(t *testing.T, err error, want failure.Class) {
	t.Helper()
	require.NotEmpty(t, f.failed(t, err, want).Phase)
}

// failed is failedAs for those who want to see more of the error, or for whom several classes will do.
func (f Fixture) failed(t *testing.T, err error, want ...failure.Class) *engine.Error {
	t.Helper()
	var e *engine.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, f.Kind, e.Engine)
	got := failure.Classify(failure.Report{Engine: e.Engine, Code: e.Code, Name: e.Name, Type: e.Type, Message: e.Error(), Reach: failure.Reach(e.Phase)})
	require.Contains(t, want, failure.Class(got.Class), "%v (code %q, phase %s)", err, e.Code, e.Phase)
	return e
}

// drain reads rows to their end.
func drain(t *testing.T, rows engine.Rows) [][]any {
	t.Helper()
	var out [][]any
	for rows.Next() {
		values, err := rows.Values()
		require.NoError(t, err)
		out = append(out, values)
	}
	return out
}

// run submits a query in the background and gives its end.
func run(ctx context.Context, e engine.Engine, q engine.Query) <-chan error {
	ended := make(chan error, 1)
	go func() {
		rows, err := e.Submit(ctx, q)
		if err != nil {
			ended <- err
			return
		}
		for rows.Next() {
		}
		ended <- errors.Join(rows.Err(), rows.Close())
	}()
	return ended
}

const patience = 20 * time.Second

func awaitState(t *testing.T, e engine.Engine, id string, want engine.RunState) {
	t.Helper()
	require.Eventually(t, func() bool {
		run, err := e.Find(t.Context(), id)
		return err == nil && run.State == want
	}, patience, 20*time.Millisecond, "waiting for %s to be %s", id, want)
}

func awaitEnd(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatal("the query did not end")
		return nil
	}
}
