package parts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

// pool runs the batch engine when the custom resource asks for replicas. It keeps one address through sleep and wake, as a
// service name would.
type pool struct {
	cfg   chdb.Config
	views []string

	mu     sync.Mutex
	engine *chdb.Engine
}

// Start starts the engine and shows it the tables.
func (p *pool) Start(ctx context.Context) error {
	e, err := chdb.Start(ctx, p.cfg)
	if err != nil {
		return err // it says which engine
	}
	if err := showLake(ctx, e, p.views); err != nil {
		return errors.Join(err, e.Stop(context.WithoutCancel(ctx)))
	}
	p.mu.Lock()
	p.engine = e
	p.mu.Unlock()
	return nil
}

// Stop ends the engine.
func (p *pool) Stop(ctx context.Context) error {
	p.mu.Lock()
	e := p.engine
	p.engine = nil
	p.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.Stop(ctx)
}

// Alive reports whether the engine's process runs.
func (p *pool) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engine != nil && p.engine.Pid() > 0
}

// Addr is where the pool answers while it is awake.
func (p *pool) Addr() string { return p.cfg.Addr }

// fixedAddr picks the port of an address with port 0 now, since the services must know it before the pool first wakes.
func fixedAddr(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("the batch pool's address: %w", err)
	}
	if port != "0" {
		return addr, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("finding a free port for the batch pool: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
