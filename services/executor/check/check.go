// Package check tries out what works against an engine: whether it can be reached, run, looked into, stopped and held to limits,
// in a minute at most, with statements that read no data of its owner's.
//
// It goes by the engine port alone, so it says of an engine what the executor would find. What the adapters promise in general
// is checked by their suite (pkg/engine/enginetest).
package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Status is how a check went.
type Status string

// The ends of a check.
const (
	OK     Status = "ok"
	Failed Status = "failed"
	// Skipped means that it was not tried: an earlier one failed that it needs, or this kind of engine has no such thing.
	Skipped Status = "skipped"
)

// Finding is what one check found.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Ms     int64  `json:"ms"`
	// Detail says more: what was seen, or what was wrong.
	Detail string `json:"detail,omitempty"`
}

// Options are what the checks need to know.
type Options struct {
	// Kind is the engine's kind: its dialect, and its native codes.
	Kind string
	// ID begins the ids of what is run, and makes them unique.
	ID string
	// Database is where the statements run.
	Database string
	// Gone is how long a stopped query may still be seen at the engine.
	Gone time.Duration
	// Each bounds one check.
	Each time.Duration
	// Variants are the settings and the memory that the owner's queries get, by what they are for.
	Variants map[string]Variant
}

// Variant is what goes with a query.
type Variant struct {
	Settings  map[string]string
	MaxMemory int64 // bytes; 0 is no limit
}

// check is one of them. needs names one that has to be ok.
type check struct {
	name, needs string
	run         func(context.Context, *probe) (detail string, err error)
}

// errSkip ends a check that can't be made here.
var errSkip = errors.New("not tried")

func skip(why string) error { return fmt.Errorf("%w: %s", errSkip, why) }

// errSlow is the cause of the end of a check that has taken Options.Each.
var errSlow = errors.New("it took too long")

const (
	cancelCheck   = "cancel"
	settingsCheck = "settings"
)

var checks = []check{
	{"connect", "", connect},
	{"canary", "connect", canary},
	{"observe", "connect", observe},
	{"submit", "connect", submit},
	{"types", "submit", types},
	{"error", "submit", wrong},
	{"guard", "connect", guard},
	{"find", "submit", find},
	{cancelCheck, "submit", cancel},
	{"time limit", "submit", timeLimit},
	{"memory limit", "submit", memoryLimit},
	{settingsCheck, "submit", settings},
}

// Names are the checks in their order. The last, of settings, is made only where there are some.
func Names() []string {
	out := make([]string, len(checks))
	for i, c := range checks {
		out[i] = c.name
	}
	return out
}

// Run makes the checks, one after the other. Those that have not begun when the context ends are skipped, but that
// nothing is left running.
func Run(ctx context.Context, e engine.Engine, opts Options) []Finding {
	p := &probe{engine: e, opts: opts, dialect: dialects[opts.Kind]}
	done := map[string]Status{"": OK}
	var out []Finding
	for _, c := range checks {
		if c.name == settingsCheck && len(opts.Variants) == 0 {
			continue // nobody has asked
		}
		f := Finding{Check: c.name, Status: Skipped}
		bound := ctx
		if c.name == cancelCheck && p.slow != nil { // what was started is stopped, however late it is
			bound = context.WithoutCancel(ctx)
		}
		switch {
		case done[c.needs] != OK:
			f.Detail = "needs " + c.needs
		case bound.Err() != nil:
			f.Detail = context.Cause(ctx).Error()
		default:
			began := time.Now()
			f.Status, f.Detail = p.try(bound, c)
			f.Ms = time.Since(began).Milliseconds()
		}
		done[c.name] = f.Status
		out = append(out, f)
	}
	return out
}

// Good reports whether nothing failed.
func Good(findings []Finding) bool {
	for _, f := range findings {
		if f.Status == Failed {
			return false
		}
	}
	return true
}

// probe makes the checks of one engine.
type probe struct {
	engine  engine.Engine
	opts    Options
	dialect dialect
	n       int
	// slow is the query that find looked for and cancel stops; nil when it has to be started yet.
	slow *query
}

func (p *probe) try(ctx context.Context, c check) (Status, string) {
	ctx, stop := context.WithTimeoutCause(ctx, p.opts.Each, errSlow)
	defer stop()
	detail, err := c.run(ctx, p)
	switch {
	case errors.Is(err, errSkip):
		return Skipped, strings.TrimPrefix(err.Error(), errSkip.Error()+": ")
	case err != nil && errors.Is(context.Cause(ctx), errSlow):
		return Failed, fmt.Sprintf("no answer within %s: %s", p.opts.Each, err)
	case err != nil:
		return Failed, err.Error()
	default:
		return OK, detail
	}
}

func (p *probe) id() string {
	p.n++
	return fmt.Sprintf("%s/%d", p.opts.ID, p.n)
}

func (p *probe) query(sql string) engine.Query {
	return engine.Query{ID: p.id(), SQL: sql, Database: p.opts.Database, MaxExecution: p.opts.Each, SubmitBefore: time.Now().Add(p.opts.Each)}
}

// query is one that runs in the background.
type query struct {
	id    string
	stop  context.CancelFunc
	ended chan error
}

func (p *probe) start(q engine.Query) *query {
	ctx, stop := context.WithCancel(context.Background())
	out := &query{id: q.ID, stop: stop, ended: make(chan error, 1)}
	go func() {
		_, err := p.all(ctx, q)
		out.ended <- err
	}()
	return out
}

// all runs a query to its end and gives its rows as lines of JSON.
func (p *probe) all(ctx context.Context, q engine.Query) (lines string, err error) {
	r, err := p.engine.Submit(ctx, q)
	if err != nil {
		return "", err
	}
	enc := rows.NewEncoder(r.Columns())
	for r.Next() {
		values, err := r.Values()
		if err != nil {
			return "", errors.Join(err, r.Close())
		}
		line, err := enc.Line(values)
		if err != nil {
			return "", errors.Join(err, r.Close())
		}
		lines += string(line)
	}
	return strings.TrimSpace(lines), errors.Join(r.Err(), r.Close())
}

func connect(ctx context.Context, p *probe) (string, error) {
	run, err := p.engine.Find(ctx, p.id())
	if err == nil && run.State == engine.RunActive {
		return "", errors.New("it says that a query runs which nobody has sent")
	}
	return "", err
}

func canary(ctx context.Context, p *probe) (string, error) { return "", p.engine.Canary(ctx) }

func observe(ctx context.Context, p *probe) (string, error) {
	o, err := p.engine.Observe(ctx)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(o.Values)) {
		if v := o.Values[name]; v.State() == signal.Known {
			parts = append(parts, string(name)+" "+v.String())
		}
	}
	if healthy, known := o.Values[signal.Healthy].Get(); known && healthy == 0 {
		return "", errors.New("it answers, and says that it is not healthy")
	}
	return strings.Join(parts, ", "), nil
}

func submit(ctx context.Context, p *probe) (string, error) {
	got, err := p.all(ctx, p.query("SELECT 1"))
	if err == nil && got != "[1]" && got != `["1"]` {
		err = fmt.Errorf("SELECT 1 gave %s", got)
	}
	return "", err
}

func types(ctx context.Context, p *probe) (string, error) {
	if p.dialect.types == "" {
		return "", skip("no statement is known for this kind of engine")
	}
	got, err := p.all(ctx, p.query(p.dialect.types))
	if err == nil && got != p.dialect.typed {
		err = fmt.Errorf("got %s, and not %s", got, p.dialect.typed)
	}
	return "64-bit integers, decimals, NULL and times are exact", err
}

func wrong(ctx context.Context, p *probe) (string, error) {
	_, err := p.all(ctx, p.query("SELECT * FROM pointsman_has_no_such_table"))
	return p.expect(err, failure.Semantic)
}

// expect classifies an error as the executor does.
func (p *probe) expect(err error, want ...failure.Class) (string, error) {
	if err == nil {
		return "", fmt.Errorf("it succeeded, and should have failed as %s", want[0])
	}
	f := p.classify(err)
	for _, c := range want {
		if f.Class == string(c) {
			return strings.TrimSpace(fmt.Sprintf("%s %s", f.Code, f.Name)), nil
		}
	}
	return "", fmt.Errorf("it failed as %s and not as %s: %w", f.Class, want[0], err)
}

func (p *probe) classify(err error) event.Failure {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok {
		return failure.Of(failure.Internal, err.Error())
	}
	return failure.Classify(failure.Report{Engine: e.Engine, Code: e.Code, Name: e.Name, Message: e.Error(), Reach: failure.Reach(e.Phase)})
}

func guard(ctx context.Context, p *probe) (string, error) {
	q := p.query("SELECT 1")
	q.SubmitBefore = time.Now().Add(-time.Second)
	_, err := p.all(ctx, q)
	switch {
	case err == nil:
		return "", errors.New("it ran although its guard had run out")
	case !errors.Is(err, engine.ErrGuardExpired):
		return "", fmt.Errorf("it failed otherwise: %w", err)
	}
	return "nothing leaves after its time", nil
}
