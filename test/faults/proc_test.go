package faults_test

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/executor"
)

// proc is an executor as a process: with ways of its own to the broker and to the engine, and points at which it can be held.
type proc struct {
	app         *executor.App
	tel         *telemetry.Telemetry
	network     *network
	main, spare *gate

	mu    sync.Mutex
	at    map[string]chan struct{} // reached
	until map[string]chan struct{} // released
}

func (p *proc) hook(_ context.Context, step executor.Step, id string) {
	p.mu.Lock()
	key := string(step) + " " + id
	reached, until := p.at[key], p.until[key]
	if reached != nil {
		delete(p.at, key)
		close(reached)
	}
	p.mu.Unlock()
	if until != nil {
		<-until
	}
}

// stopAt holds an attempt at a step until it is released.
func (p *proc) stopAt(step executor.Step, id string) (reached <-chan struct{}, release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := string(step) + " " + id
	at, until := make(chan struct{}), make(chan struct{})
	p.at[key], p.until[key] = at, until
	return at, sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.until, key)
		delete(p.at, key)
		close(until)
	})
}

// guardLeave is the guard of claims here.
const guardLeave = time.Second

func (l *lane) start() *proc {
	p := &proc{network: newNetwork(), at: map[string]chan struct{}{}, until: map[string]chan struct{}{}}
	p.main, p.spare = newGate(l.t, l.engine, l.wire, l.engine.whole), newGate(l.t, l.engine, l.wire, false)
	cfg := executor.Default()
	cfg.Telemetry.Admin.Address = ""
	cfg.Kafka = l.broker.Config
	cfg.Group.SessionTimeout, cfg.Group.HeartbeatEvery, cfg.Group.RebalanceTimeout = 3*time.Second, 300*time.Millisecond, 5*time.Second
	cfg.Group.CommitEvery = 50 * time.Millisecond
	a := &cfg.Attempts
	a.GuardLeave, a.GuardSettle = guardLeave, 200*time.Millisecond
	a.BackoffFirst, a.BackoffMax = 10*time.Millisecond, 200*time.Millisecond
	a.MaxAttempts, a.MaxRetries, a.RetryReserve = 20, 2, 1000
	a.LookUpTimeout, a.StopTimeout, a.Grace = 4*time.Second, 2*time.Second, 50*time.Millisecond
	a.SeenAfter = 100 * time.Millisecond
	cfg.Results.Folder = l.results
	for name, g := range map[string]*gate{mainCluster: p.main, spareCluster: p.spare} {
		e := l.engine.config
		e.Name, e.URL, e.Slots = name, l.engine.url(g.addr), 1
		e.Resources = l.engine.resources
		cfg.Engines = append(cfg.Engines, e)
	}
	tel, err := telemetry.New(context.Background(), cfg.Telemetry, telemetry.Options{Service: "executor", Logger: l.log})
	require.NoError(l.t, err)
	p.tel = tel
	p.app, err = executor.New(context.Background(), cfg, tel, executor.Options{Hooks: executor.Hooks{At: p.hook}, Dialer: p.network.dial})
	require.NoError(l.t, err)
	require.NoError(l.t, p.app.Start(context.Background()))
	return p
}

// crash is a kill -9: neither the broker nor the engine hears anything more but that the connections are gone.
func (p *proc) crash() {
	p.network.set(true, false, false) // first: what sees its connection to the engine end must not write of it any more
	p.main.kill()
	p.spare.kill()
}

// retire frees what a process held, in the background. One that crashed has no way to anything any more.
func (l *lane) retire(p *proc) {
	p.mu.Lock()
	for key, until := range p.until {
		close(until)
		delete(p.until, key)
	}
	p.mu.Unlock()
	l.retired.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = p.app.Stop(ctx)
		_ = p.tel.Stop(ctx)
		p.main.kill()
		p.spare.kill()
	})
}
