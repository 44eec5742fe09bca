package wire

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrClosed is what Take says once the spares are closed.
var ErrClosed = errors.New("the engine's client was closed")

// Spares keeps connections ready on which nothing has run yet. Each is taken once and never given back: a statement that is
// killed by the number of its connection can then be no other one, and nothing that a session was left with reaches the next.
type Spares[C any] struct {
	cfg   SparesConfig[C]
	life  context.Context // ends with Close
	end   context.CancelCauseFunc
	group sync.WaitGroup

	mu      sync.Mutex
	ready   []spare[C]
	dialing int
	closed  bool
}

// SparesConfig says how connections are made.
type SparesConfig[C any] struct {
	Dial  func(ctx context.Context) (C, error)
	Close func(C)
	// Keep is how many are kept ready after the first was taken; 0 keeps none.
	Keep int
	// MaxAge is how long an unused one is believed in. The server may have closed it, or a firewall forgotten it.
	MaxAge time.Duration
}

type spare[C any] struct {
	conn C
	at   time.Time
	drop *time.Timer
}

// NewSpares makes a keeper, with nothing ready: an engine that is never used is never dialled.
func NewSpares[C any](cfg SparesConfig[C]) *Spares[C] {
	s := &Spares[C]{cfg: cfg}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// Take gives a connection and starts making the next one. ready says that it was made before: its server may have gone away
// meanwhile, and the caller may ask for another one.
func (s *Spares[C]) Take(ctx context.Context) (conn C, ready bool, err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return conn, false, ErrClosed
	}
	if n := len(s.ready); n > 0 {
		r := s.ready[n-1]
		s.ready = s.ready[:n-1]
		r.drop.Stop()
		s.refill()
		s.mu.Unlock()
		return r.conn, true, nil
	}
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if conn, err = s.cfg.Dial(ctx); err != nil {
		if s.life.Err() != nil {
			err = ErrClosed
		}
		return conn, false, err
	}
	s.mu.Lock()
	s.refill()
	s.mu.Unlock()
	return conn, false, nil
}

// refill dials what is missing. The lock is held.
func (s *Spares[C]) refill() {
	for !s.closed && len(s.ready)+s.dialing < s.cfg.Keep {
		s.dialing++
		s.group.Go(func() {
			conn, err := s.cfg.Dial(s.life)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dialing--
			switch {
			case err != nil: // the next Take dials itself, and tells
			case s.closed:
				s.cfg.Close(conn)
			default:
				at := time.Now()
				s.ready = append(s.ready, spare[C]{conn, at, time.AfterFunc(s.cfg.MaxAge, s.dropOld)})
			}
		})
	}
}

// dropOld closes what nobody wanted in time. It is made anew only when somebody takes one.
func (s *Spares[C]) dropOld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.ready[:0]
	for _, r := range s.ready {
		if time.Since(r.at) >= s.cfg.MaxAge {
			s.cfg.Close(r.conn)
			continue
		}
		kept = append(kept, r)
	}
	s.ready = kept
}

// Close closes what is ready and waits for what is being dialled.
func (s *Spares[C]) Close() {
	s.mu.Lock()
	s.closed = true
	ready := s.ready
	s.ready = nil
	s.mu.Unlock()
	s.end(ErrClosed)
	for _, r := range ready {
		r.drop.Stop()
		s.cfg.Close(r.conn)
	}
	s.group.Wait()
}
