package executor_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

// point is one effect of one row of the attempt table: the moment just before it.
type point struct {
	state  attempt.State
	event  attempt.Event
	effect attempt.Effect
}

// does is what the engine does of a Task's first attempt in the first process. Every other one gets a row at once.
type does struct {
	down   bool   // nobody listens
	code   string // it fails with this
	hold   bool   // it runs until the stage lets it end
	queued bool   // it stands in the engine's queue until the stage lets it begin
	loses  bool   // the connection breaks as soon as it has left
	hidden bool   // a look-up finds nothing of it
	mum    bool   // a look-up gets no answer
	found  engine.RunState
	rows   string // "held" until the stage lets them through, or then "lost", "failed" or "unfit"
	greedy bool   // it shows a thousand times the bytes that were estimated
}

// act is one Task of a stage.
type act struct {
	cluster  string
	write    bool
	deadline time.Duration // 0: not within the test
	cancel   bool          // its user took it back, or may have
	does     does

	first point                               // where the first process stands still with it; zero: nowhere
	then  point                               // and where the second one does
	on    map[point]func(s *stage, id string) // what happens on the way, in the first process

	once map[point]*sync.Once     // of on
	cues map[string]chan struct{} // what the stage says to its engine, by name
}

// stage makes executors stand still with many Tasks at once, each at a point of its own.
type stage struct {
	b       *bench
	release chan struct{} // lets everybody go who stands still
	cancels chan string   // Tasks whose users take them back now
	wakes   chan string   // Tasks whose pool wakes up now
	leaving chan struct{} // the process gives its partition back

	mu      sync.Mutex
	acts    map[string]*act
	process int // how many have been started
	reached map[string]bool
}

func newStage(b *bench) *stage {
	return &stage{
		b: b, release: make(chan struct{}), cancels: make(chan string, 1000), wakes: make(chan string, 1000), leaving: make(chan struct{}),
		acts: map[string]*act{}, reached: map[string]bool{},
	}
}

func (s *stage) add(id string, a act) {
	a.cues = map[string]chan struct{}{"begin": make(chan struct{}), "end": make(chan struct{}), "break": make(chan struct{}), "heard": make(chan struct{})}
	a.once = map[point]*sync.Once{}
	for p := range a.on {
		a.once[p] = &sync.Once{}
	}
	s.acts[id] = &a
}

// cue gives one to the engine, once.
func (s *stage) cue(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.acts[id].cues[name]:
	default:
		close(s.acts[id].cues[name])
	}
}

// start starts the next process.
func (s *stage) start() *proc {
	s.mu.Lock()
	s.process++
	n := s.process
	s.mu.Unlock()
	s.b.effects = func(ctx context.Context, id string, from attempt.State, e attempt.Event, effect attempt.Effect) {
		s.hook(ctx, n, id, point{from, e, effect})
	}
	s.b.wrap = func(c *client) engine.Engine {
		return &player{client: c, stage: s, process: n, began: map[string]bool{}}
	}
	return s.b.start()
}

func (s *stage) hook(_ context.Context, process int, id string, p point) {
	task, number, _ := strings.Cut(id, "/")
	a := s.acts[task]
	if a == nil || number != "1" || process > 2 {
		return
	}
	if f := a.on[p]; f != nil && process == 1 {
		a.once[p].Do(func() { f(s, task) })
	}
	if process == 1 && p == a.first || process == 2 && p == a.then {
		s.mu.Lock()
		s.reached[task+" "+string('0'+rune(process))] = true
		s.mu.Unlock()
		<-s.release
	}
}

// missing are the Tasks that have not come to where a process is to stand still with them.
func (s *stage) missing(process int) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range s.acts {
		p := a.first
		if process == 2 {
			p = a.then
		}
		if p != (point{}) && !s.reached[id+" "+string('0'+rune(process))] {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// player is a process's way to an engine that plays what the acts say.
type player struct {
	*client
	stage   *stage
	process int

	mu    sync.Mutex
	began map[string]bool // its rows are coming
}

func (p *player) does(id string) (*act, does) {
	task, number, _ := strings.Cut(id, "/")
	if a := p.stage.acts[task]; a != nil && number == "1" && p.process == 1 {
		return a, a.does
	}
	return nil, does{}
}

// Submit implements engine.Engine.
func (p *player) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	a, d := p.does(q.ID)
	if a == nil {
		q.SQL = "PLAIN"
		return p.client.Submit(ctx, q)
	}
	if d.down {
		return nil, refused()
	}
	b := behaviour{rows: 3, code: d.code, lose: d.loses}
	if d.hold {
		b.hold = a.cues["end"]
	}
	if d.queued {
		b.wait, b.hold = a.cues["begin"], a.cues["end"]
	}
	if d.greedy {
		b.read = 1000
	}
	p.server.on(q.ID, b)
	q.SQL = q.ID
	type answer struct {
		rows engine.Rows
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		rows, err := p.client.Submit(ctx, q)
		answered <- answer{rows, err}
	}()
	select {
	case got := <-answered:
		if got.err == nil && d.rows != "" {
			p.mu.Lock()
			p.began[q.ID] = true
			p.mu.Unlock()
			return &heldRows{Rows: got.rows, how: d.rows, until: a.cues["end"], dead: p.dead, ctx: ctx}, nil
		}
		return got.rows, got.err
	case <-a.cues["break"]:
		return nil, lost()
	}
}

// Find implements engine.Engine.
func (p *player) Find(ctx context.Context, id string) (engine.Run, error) {
	_, d := p.does(id)
	p.mu.Lock()
	began := p.began[id]
	p.mu.Unlock()
	read := int64(1000)
	switch {
	case p.isDead(), d.mum:
		return engine.Run{}, refused()
	case d.hidden:
		return engine.Run{State: engine.RunUnknown}, nil
	case began && d.greedy:
		return engine.Run{State: engine.RunActive, Elapsed: time.Second, Stats: event.Stats{ReadBytes: &read}}, nil
	}
	if a := p.stage.acts[strings.TrimSuffix(id, "/1")]; a != nil && a.does.found != "" { // an engine with a history
		return engine.Run{State: a.does.found, Failure: coded("241", "as its history says")}, nil
	}
	return p.client.Find(ctx, id)
}

// heldRows come when the stage lets them.
type heldRows struct {
	engine.Rows
	how   string
	until <-chan struct{}
	dead  <-chan struct{}
	ctx   context.Context
	err   error
}

// Next implements engine.Rows.
func (r *heldRows) Next() bool {
	if r.err != nil {
		return false
	}
	switch r.how {
	case "held":
		select {
		case <-r.until:
			return r.Rows.Next()
		case <-r.dead:
			r.err = lost()
		case <-r.ctx.Done():
			r.err = coded("394", "query was cancelled")
		}
	case "lost":
		r.err = lost()
	case "failed":
		r.err = coded("241", "over its memory between two rows")
	case "unfit":
		return r.Rows.Next()
	}
	return false
}

// Values implements engine.Rows.
func (r *heldRows) Values() ([]any, error) {
	if r.how == "unfit" {
		return nil, errors.New("the disk is full")
	}
	return r.Rows.Values()
}

// Err implements engine.Rows.
func (r *heldRows) Err() error { return r.err }

// tell publishes the decision of every act.
func (s *stage) tell(ids []string) {
	var all []event.RouteDecision
	for _, id := range ids {
		a := s.acts[id]
		all = append(all, s.b.route(id, id, estimating(1), func(d *event.RouteDecision) {
			d.ReadOnly = !a.write
			if a.cluster != "" {
				d.Cluster = a.cluster
			}
			d.Deadline = time.Now().Add(cmp.Or(a.deadline, 10*time.Minute)).UTC()
		}))
	}
	s.b.decide(all...)
}

// submissions counts what reached the engines of a Task, by all processes together.
func (s *stage) submissions(task string) (n int) {
	for _, server := range s.b.servers {
		for id, k := range server.counts() {
			if of, _, _ := query.SplitAttemptID(id); of == task {
				n += k
			}
		}
	}
	return n
}
