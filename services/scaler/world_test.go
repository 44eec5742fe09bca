package scaler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/kube"
	"github.com/pointsman/pointsman/pkg/probe"
	"github.com/pointsman/pointsman/pkg/signal"
)

// world is everything around a pool, all of it in the test's hands and on the test's clock.
type world struct {
	mu       sync.Mutex
	replicas int32
	reads    int
	writes   []int32
	readErr  error
	writeErr error
	onScale  func() // runs between a write's read and its decision

	layers  [3]probe.Verdict
	running signal.Value
	loadErr error

	open     int
	lastWork time.Time
	changed  chan struct{}

	complete  bool
	verifyErr error
	onVerify  func()

	leads     bool
	queue     signal.Value
	published []signal.Observation
	failing   bool // publishing fails
}

func (w *world) Get(context.Context) (kube.Cluster, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	if w.readErr != nil {
		return kube.Cluster{}, w.readErr
	}
	return w.cluster(), nil
}

func (w *world) cluster() kube.Cluster {
	n, available, generation := w.replicas, w.replicas, int64(1)
	return kube.Cluster{ResourceVersion: "1", Generation: 1, ObservedGeneration: &generation, Groups: []kube.Group{
		{UniqueID: "cg", Declared: &n, Status: &kube.GroupStatus{Available: &available}},
	}}
}

func (w *world) Scale(_ context.Context, _ string, decide func(kube.Group) (int32, bool)) (kube.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onScale != nil {
		w.onScale()
	}
	if w.writeErr != nil {
		return kube.Result{}, w.writeErr
	}
	from := w.replicas
	to, write := decide(w.cluster().Groups[0])
	if !write || to == from {
		return kube.Result{Cluster: w.cluster(), From: from, To: from}, nil
	}
	w.replicas = to
	w.writes = append(w.writes, to)
	return kube.Result{Cluster: w.cluster(), Wrote: true, From: from, To: to}, nil
}

func (w *world) Climb(context.Context, probe.Pods) probe.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := probe.Report{At: time.Now(), Load: signal.Observation{Values: map[signal.Name]signal.Value{}}}
	if n, ok := w.running.Last(); ok {
		r.Load.Values[signal.Running] = signal.Of(n, signal.Count, "engine", time.Now())
	}
	for i, l := range probe.Layers() {
		r.Checks = append(r.Checks, probe.Check{Layer: l, Verdict: w.layers[i], Reason: "because"})
	}
	return r
}

func (w *world) Load(context.Context) (signal.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return signal.Observation{Values: map[signal.Name]signal.Value{signal.Running: w.running}}, w.loadErr
}

func (w *world) Open(string) int { w.mu.Lock(); defer w.mu.Unlock(); return w.open }

func (w *world) LastWork(string) time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.lastWork }

func (w *world) Changed() <-chan struct{} { w.mu.Lock(); defer w.mu.Unlock(); return w.changed }

func (w *world) Complete() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.complete }

func (w *world) Verify(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onVerify != nil {
		w.onVerify()
	}
	return w.verifyErr
}

// tasks sets how many Tasks want the pool.
func (w *world) tasks(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.lastWork = n, time.Now()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) set(change func()) { w.mu.Lock(); defer w.mu.Unlock(); change() }

func (w *world) size() int32 { w.mu.Lock(); defer w.mu.Unlock(); return w.replicas }

func (w *world) written() []int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int32{}, w.writes...)
}

func (w *world) last() signal.Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.published) == 0 {
		return signal.Observation{}
	}
	return w.published[len(w.published)-1]
}

func (w *world) says(name signal.Name) signal.Value { return w.last().Values[name] }

func (w *world) count() int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.published) }

var up = [3]probe.Verdict{probe.Passed, probe.Passed, probe.Passed}

// inWorld runs a pool on the bubble's clock.
func inWorld(t *testing.T, edit func(*PoolConfig), test func(t *testing.T, w *world, p *pool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{changed: make(chan struct{}), complete: true, leads: true, layers: up}
		w.running = signal.Of(0, signal.Count, "engine", time.Now())
		cfg := PoolConfig{Name: "batch", ComputeGroup: "cg"}
		cfg.SetDefaults()
		cfg.Max = 4
		cfg.IdleAfter, cfg.WakeWindow = time.Minute, 30*time.Second
		if edit != nil {
			edit(&cfg)
		}
		p := &pool{
			cfg: cfg, timing: Default().Timing, control: w, ladder: w, wishes: w, proof: w, metrics: newMetrics(nil).of("batch"),
			queued: func(time.Time) signal.Value { w.mu.Lock(); defer w.mu.Unlock(); return w.queue },
			leads:  func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.leads },
			publish: func(_ context.Context, o signal.Observation) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.failing {
					return errors.New("no broker")
				}
				w.published = append(w.published, o)
				return nil
			},
			log: slog.New(slog.DiscardHandler), dirty: make(chan struct{}, 1), asked: make(chan struct{}, 1),
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.run(ctx) }()
		test(t, w, p)
		cancel()
		require.NoError(t, <-done)
	})
}

// pass lets time go by.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

func number(t *testing.T, v signal.Value) float64 {
	t.Helper()
	n, known := v.Get()
	require.True(t, known, "%v is known", v)
	return n
}
