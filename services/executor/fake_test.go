package executor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/signal"
)

// server is a cluster that any number of clients talk to. It counts what reaches it, and does what the statement's script
// says.
type server struct {
	mu          sync.Mutex
	script      map[string]behaviour // by SQL text
	submissions map[string]int       // by attempt id
	settings    map[string]map[string]string
	order       []string
	running     map[string]*run
	killed      map[string]bool
	down        bool
	most        int                   // that ran at once
	history     map[string]engine.Run // what it knows of queries that are over; nil knows nothing, like most engines
	quick       bool                  // what is stopped was done just before
}

// behaviour is what a statement does.
type behaviour struct {
	code string          // fail with this native code
	rows int             // rows of one number
	wide int             // bytes of text in each row besides
	hold <-chan struct{} // run until this is closed
	wait <-chan struct{} // stand in the engine's queue until this is closed
	lose bool            // run, and lose the connection before the answer
	mute bool            // the first attempt's answer never comes, and nobody is told
	then func(id string) // called when it is submitted
	slow time.Duration
	read int64         // bytes that its progress shows; 0 shows none
	peak int64         // bytes of memory that its progress shows; 0 shows none
	done float64       // share of its work that its progress shows; 0 shows none
	late time.Duration // of the first attempt the connection is lost at once, and the engine sees it only after this
}

type run struct {
	stop  chan struct{}
	ended chan struct{}
	since time.Time
	stats event.Stats
	done  *float64
	wait  <-chan struct{}
}

// waits says that it stands in the queue yet.
func (r *run) waits() bool {
	if r.wait == nil {
		return false
	}
	select {
	case <-r.wait:
		return false
	default:
		return true
	}
}

func newServer() *server {
	return &server{script: map[string]behaviour{}, submissions: map[string]int{}, settings: map[string]map[string]string{}, running: map[string]*run{}, killed: map[string]bool{}}
}

func (s *server) on(sql string, b behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script[sql] = b
}

func (s *server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *server) count(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.submissions[id]
}

func (s *server) settingsOf(id string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings[id]
}

func (s *server) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.submissions)
}

func (s *server) active(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[id] != nil
}

func (s *server) mostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *server) wasQuick() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quick
}

// cutShort notes that a query was ended before all its rows were read.
func (s *server) cutShort(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed[id] = true
}

func (s *server) wasKilled(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed[id]
}

// client is one process's way to the server.
type client struct {
	*server
	dead chan struct{} // closed when its process is gone
	once sync.Once
}

func (s *server) client() *client { return &client{server: s, dead: make(chan struct{})} }

// crash is what a kill -9 of the client's process is to the server: nothing more comes, and what runs goes on.
func (c *client) crash() { c.once.Do(func() { close(c.dead) }) }

func (c *client) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

func refused() *engine.Error {
	return &engine.Error{Engine: "clickhouse", Phase: engine.NotSent, Err: errors.New("connection refused")}
}

func lost() *engine.Error {
	return &engine.Error{Engine: "clickhouse", Phase: engine.SentUnknown, Err: errors.New("connection reset by peer")}
}

func coded(code, text string) *engine.Error {
	return &engine.Error{Engine: "clickhouse", Code: code, Phase: engine.Answered, Err: errors.New(text)}
}

// Submit runs a statement.
func (c *client) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	if c.isDead() {
		return nil, refused()
	}
	if !q.SubmitBefore.IsZero() && !time.Now().Before(q.SubmitBefore) {
		return nil, &engine.Error{Engine: "clickhouse", Phase: engine.NotSent, Err: engine.ErrGuardExpired}
	}
	c.mu.Lock()
	if c.down {
		c.mu.Unlock()
		return nil, refused()
	}
	if b := c.script[q.SQL]; b.late > 0 && strings.HasSuffix(q.ID, "/1") {
		c.mu.Unlock()
		time.AfterFunc(b.late, func() { c.arrive(q.ID, b) })
		return nil, lost()
	}
	c.submissions[q.ID]++
	c.settings[q.ID] = q.Settings
	c.order = append(c.order, q.ID)
	if c.running[q.ID] != nil {
		c.mu.Unlock()
		return nil, coded("216", "it runs already")
	}
	b := c.script[q.SQL]
	r := &run{stop: make(chan struct{}), ended: make(chan struct{}), since: time.Now(), wait: b.wait}
	if b.read > 0 {
		r.stats.ReadBytes = &b.read
	}
	if b.peak > 0 {
		r.stats.PeakMemoryBytes = &b.peak
	}
	if b.done > 0 {
		r.done = &b.done
	}
	c.running[q.ID] = r
	c.most = max(c.most, len(c.running))
	c.mu.Unlock()
	if b.then != nil {
		b.then(q.ID)
	}
	hold := b.hold
	if hold == nil {
		closed := make(chan struct{})
		close(closed)
		hold = closed
	}
	limit := make(<-chan time.Time)
	if q.MaxExecution > 0 {
		timer := time.NewTimer(q.MaxExecution)
		defer timer.Stop()
		limit = timer.C
	}
	failed := make(chan *engine.Error, 1)
	go func() {
		defer close(r.ended)
		var err *engine.Error
		select {
		case <-time.After(b.slow):
		case <-r.stop:
		}
		select {
		case <-hold:
		case <-r.stop:
		case <-limit:
			err = coded("159", "timeout exceeded")
		}
		select {
		case <-r.stop:
			err = coded("394", "query was cancelled")
		default:
			if b.code != "" && err == nil {
				err = coded(b.code, "as the script says")
			}
		}
		c.mu.Lock()
		delete(c.running, q.ID)
		c.mu.Unlock()
		failed <- err
	}()
	if b.lose {
		return nil, lost()
	}
	if b.mute && strings.HasSuffix(q.ID, "/1") {
		select {
		case <-c.dead:
		case <-ctx.Done():
		}
		return nil, lost()
	}
	select {
	case err := <-failed:
		if err != nil {
			return nil, err
		}
		return &fakeRows{left: b.rows, wide: b.wide, cut: func() { c.cutShort(q.ID) }}, nil
	case <-c.dead:
		return nil, lost()
	case <-ctx.Done():
		c.kill(q.ID)
		err := <-failed
		switch {
		case c.wasQuick():
			return nil, &engine.Error{Engine: "clickhouse", Phase: engine.SentUnknown, Err: fmt.Errorf("%w; %w", context.Cause(ctx), engine.ErrDone)}
		case err != nil:
			return nil, err
		}
		return nil, coded("394", "query was cancelled")
	}
}

// arrive is a submission that nobody waits for any more.
func (s *server) arrive(id string, b behaviour) {
	s.mu.Lock()
	r := &run{stop: make(chan struct{}), ended: make(chan struct{}), since: time.Now()}
	s.submissions[id]++
	s.running[id] = r
	s.mu.Unlock()
	go func() {
		select {
		case <-b.hold:
		case <-r.stop:
		}
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
		close(r.ended)
	}()
}

func (s *server) kill(id string) bool {
	s.mu.Lock()
	r := s.running[id]
	if r != nil && !s.killed[id] {
		s.killed[id] = true
		if s.history != nil {
			s.history[id] = engine.Run{State: engine.RunCancelled}
		}
		close(r.stop)
	}
	s.mu.Unlock()
	if r == nil {
		return false
	}
	<-r.ended
	return true
}

// Find looks among what runs.
func (c *client) Find(_ context.Context, id string) (engine.Run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down || c.isDead() {
		return engine.Run{}, refused()
	}
	if r := c.running[id]; r != nil {
		return engine.Run{State: engine.RunActive, Waiting: r.waits(), Elapsed: time.Since(r.since), Stats: r.stats, Progress: r.done}, nil
	}
	if run, known := c.history[id]; known {
		return run, nil
	}
	return engine.Run{State: engine.RunUnknown}, nil
}

// Kill stops what runs.
func (c *client) Kill(_ context.Context, id string) (bool, error) {
	c.mu.Lock()
	down := c.down
	c.mu.Unlock()
	if down || c.isDead() {
		return false, refused()
	}
	return c.kill(id), nil
}

// Canary, Observe and Close are not used here.
func (c *client) Canary(context.Context) error { return nil }

func (c *client) Observe(context.Context) (signal.Observation, error) {
	return signal.Observation{}, nil
}

// Close drops the client.
func (c *client) Close() error {
	c.crash()
	return nil
}

// fakeRows are cut short when they are closed before their end, as a query of which rows are left to come is.
type fakeRows struct {
	left, n, wide int
	over          bool
	cut           func()
}

func (r *fakeRows) Columns() []event.Column {
	out := []event.Column{{Name: "n", Type: "UInt64"}}
	if r.wide > 0 {
		out = append(out, event.Column{Name: "s", Type: "String"})
	}
	return out
}

func (r *fakeRows) Next() bool {
	if r.n >= r.left {
		r.over = true
		return false
	}
	r.n++
	return true
}

func (r *fakeRows) Values() ([]any, error) {
	out := []any{uint64(r.n)}
	if r.wide > 0 {
		text := make([]byte, r.wide)
		for i := range text {
			text[i] = 'x'
		}
		out = append(out, string(text))
	}
	return out, nil
}

func (r *fakeRows) Err() error { return nil }

func (r *fakeRows) Close() error {
	if !r.over {
		r.cut()
	}
	return nil
}

func (r *fakeRows) Stats() event.Stats {
	n, read := int64(r.n), int64(1000)
	return event.Stats{ResultRows: &n, ReadRows: &read}
}
