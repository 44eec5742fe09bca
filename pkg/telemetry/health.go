package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// checkTimeout bounds one check, well inside the time that probes and load balancers wait.
const checkTimeout = 2 * time.Second

// CheckResult is the state of one check.
type CheckResult struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why not
}

// Report is the state of a service.
type Report struct {
	Service string        `json:"service,omitempty"`
	OK      bool          `json:"ok"`
	Checks  []CheckResult `json:"checks"`
}

// Health holds the named checks of a service. Alive says whether restarting it would help, Ready whether work should
// be sent to it: a broker that is away makes a service unready, not dead.
type Health struct {
	service string

	mu       sync.Mutex
	live     []*check
	ready    []*check
	draining string
}

type check struct {
	name    string
	probe   func(context.Context) error
	running atomic.Bool // a probe that hangs is not started a second time
}

// NewHealth returns a health without checks: alive, and not ready before the first check of readiness is there, since the port
// answers before a service knows what it will need.
func NewHealth(service string) *Health { return &Health{service: service} }

// Live adds a check of liveness. Few things deserve one.
func (h *Health) Live(name string, probe func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = append(h.live, &check{name: name, probe: probe})
}

// Check adds a check of readiness. The error's text is shown to whoever asks, so it must say what is missing.
func (h *Health) Check(name string, probe func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready = append(h.ready, &check{name: name, probe: probe})
}

// Gate adds a check of readiness that is a switch. It is closed, with the reason, until Open is called.
func (h *Health) Gate(name, reason string) *Gate {
	g := &Gate{}
	g.Close(reason)
	h.Check(name, g.state)
	return g
}

// Drain makes the service unready for good, so that no new work comes while it stops.
func (h *Health) Drain(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = reason
}

// Alive runs the checks of liveness.
func (h *Health) Alive(ctx context.Context) Report {
	h.mu.Lock()
	checks := h.live
	h.mu.Unlock()
	return h.report(ctx, checks)
}

// Ready runs the checks of readiness.
func (h *Health) Ready(ctx context.Context) Report {
	h.mu.Lock()
	checks, draining := h.ready, h.draining
	h.mu.Unlock()
	r := h.report(ctx, checks)
	if len(checks) == 0 {
		r.OK = false
		r.Checks = append(r.Checks, CheckResult{Name: "start", Reason: "the service is still starting"})
	}
	if draining != "" {
		r.OK = false
		r.Checks = append(r.Checks, CheckResult{Name: "draining", Reason: draining})
	}
	return r
}

func (h *Health) report(ctx context.Context, checks []*check) Report {
	r := Report{Service: h.service, OK: true, Checks: make([]CheckResult, len(checks))}
	var wait sync.WaitGroup
	for i, c := range checks {
		wait.Go(func() { r.Checks[i] = c.run(ctx) })
	}
	wait.Wait()
	for _, c := range r.Checks {
		r.OK = r.OK && c.OK
	}
	return r
}

var errBusy = errors.New("the check before this one has not answered yet")

func (c *check) run(ctx context.Context) CheckResult {
	if !c.running.CompareAndSwap(false, true) {
		return result(c.name, errBusy)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		err := c.probe(ctx)
		c.running.Store(false) // before the answer, or whoever has it could ask again too early
		done <- err
	}()
	select {
	case err := <-done:
		return result(c.name, err)
	case <-ctx.Done():
		select {
		case err := <-done: // it answered, perhaps with something better than the deadline's text
			return result(c.name, err)
		default:
			return result(c.name, fmt.Errorf("no answer within %s", checkTimeout))
		}
	}
}

func result(name string, err error) CheckResult {
	if err != nil {
		return CheckResult{Name: name, Reason: Redact(err.Error())}
	}
	return CheckResult{Name: name, OK: true}
}

// Gate is a check of readiness that is switched.
type Gate struct{ reason atomic.Pointer[string] }

// Open makes the gate ready.
func (g *Gate) Open() { g.reason.Store(nil) }

// Close makes it unready, and says why.
func (g *Gate) Close(reason string) { g.reason.Store(&reason) }

func (g *Gate) state(context.Context) error {
	if reason := g.reason.Load(); reason != nil {
		return errors.New(*reason)
	}
	return nil
}
