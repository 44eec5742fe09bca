package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
)

// asked is an engine of which it depends on the server whether it can be asked for an attempt by its id. The others all can.
type asked interface {
	CanFind(ctx context.Context) (bool, error)
}

func find(ctx context.Context, p *probe) (string, error) {
	if a, ok := p.engine.(asked); ok {
		can, err := a.CanFind(ctx)
		if err != nil {
			return "", err
		}
		if !can {
			return "", skip("this server can't be asked for a query by its id: of an executor that dies a read is run again, and a write ends as submit_unknown")
		}
	}
	began := time.Now()
	run, err := p.startSlow(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("seen after %s; progress: %s", time.Since(began).Round(time.Millisecond), known(run.Stats)), nil
}

// startSlow starts the query that takes long and waits until it is seen at work.
func (p *probe) startSlow(ctx context.Context) (engine.Run, error) {
	if p.dialect.slow == "" {
		return engine.Run{}, skip("no statement is known for this kind of engine")
	}
	slow := p.start(p.query(p.dialect.slow))
	for {
		run, err := p.engine.Find(ctx, slow.id)
		if err == nil && run.State == engine.RunActive {
			p.slow = slow
			return run, nil
		}
		select {
		case ended := <-slow.ended:
			return engine.Run{}, errors.Join(errors.New("a query that takes long was over before it was found"), ended)
		case <-ctx.Done():
			slow.stop()
			return engine.Run{}, errors.Join(errors.New("a running query was not found by its id"), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// known names what the engine says of a running query.
func known(s event.Stats) string {
	var parts []string
	for _, v := range []struct {
		name string
		set  bool
	}{{"rows", s.ReadRows != nil}, {"bytes", s.ReadBytes != nil}, {"memory", s.PeakMemoryBytes != nil}} {
		if v.set {
			parts = append(parts, v.name)
		}
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}

// toBegin is how long a query gets to begin at an engine that can't be asked for it.
const toBegin = 500 * time.Millisecond

func cancel(ctx context.Context, p *probe) (string, error) {
	if p.slow == nil {
		if _, err := p.startSlow(ctx); err != nil {
			return "", err
		}
		time.Sleep(toBegin)
	}
	defer p.slow.stop()
	began := time.Now()
	found, err := p.engine.Kill(ctx, p.slow.id)
	if err != nil || !found {
		return "", errors.Join(fmt.Errorf("the engine did not stop it (found: %t)", found), err)
	}
	for {
		run, err := p.engine.Find(ctx, p.slow.id)
		if err == nil && run.State != engine.RunActive {
			break
		}
		if ctx.Err() != nil {
			return "", errors.Join(errors.New("it was still running"), err)
		}
	}
	gone := time.Since(began)
	if gone > p.opts.Gone {
		return "", fmt.Errorf("it was gone only after %s", gone.Round(time.Millisecond))
	}
	select {
	case err := <-p.slow.ended:
		if _, err := p.expect(err, failure.KilledByOperator, failure.CancelledByUser); err != nil {
			return "", err
		}
	case <-ctx.Done():
		return "", errors.New("whoever submitted it was not told")
	}
	return fmt.Sprintf("gone after %s", gone.Round(time.Millisecond)), nil
}

func timeLimit(ctx context.Context, p *probe) (string, error) {
	if p.dialect.slow == "" {
		return "", skip("no statement is known for this kind of engine")
	}
	q := p.query(p.dialect.slow)
	q.MaxExecution = time.Second
	_, err := p.all(ctx, q)
	return p.expect(err, failure.Timeout)
}

func memoryLimit(ctx context.Context, p *probe) (string, error) {
	if p.dialect.greedy == "" {
		return "", skip("this kind of engine takes no limit for one query, or needs data to show it")
	}
	q := p.query(p.dialect.greedy)
	q.MaxMemoryBytes = greedyLimit
	_, err := p.all(ctx, q)
	return p.expect(err, failure.MemoryLimit)
}
