package wire

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// ErrDuplicate refuses an attempt that has a session at the server already.
var ErrDuplicate = errors.New("an attempt with this id has a session at the server already")

var errHalfSent = errors.New("the connection broke while the statement was being sent, and its guard ran out before the rest of it left")

// Ready takes a connection and makes it the attempt's. One that was kept ready may have gone away meanwhile, or its network: then
// another one is taken. Nothing of the statement has left, so nobody has to wait for a server that says nothing for longer than
// within. broken says of an error of prepare that it was the connection.
func (s *Spares[C]) Ready(ctx context.Context, sub *Submission, within time.Duration, prepare func(context.Context, C) error, broken func(C, error) bool) (C, error) {
	var none C
	for tried := 0; ; tried++ {
		conn, spare, err := s.Take(ctx)
		if err != nil {
			return none, err
		}
		if sub.TooLate() { // it will be submitted again, and must not meet the lock of a session that is just going away
			s.cfg.Close(conn)
			return none, engine.ErrGuardExpired
		}
		bound, cancel := context.WithTimeout(ctx, within)
		err = prepare(bound, conn)
		// More than were kept ready can't have gone dead meanwhile: what comes then was made while this waited.
		another := spare && tried < s.cfg.Keep && (bound.Err() != nil || err != nil && broken(conn, err)) && ctx.Err() == nil
		cancel()
		if err == nil {
			return conn, nil
		}
		s.cfg.Close(conn)
		if !another {
			return none, err
		}
	}
}

// lockFor is how long a lock is tried for. TiDB waits for a second each time, whatever it is told.
const lockFor = time.Second

// Lock tries to take an attempt's lock, several times: who holds it may be a session of ours that did nothing and is just going
// away, and a busy server takes its time to notice. A server that waits by itself before it says no is asked less often.
func Lock(ctx context.Context, tries int, wait time.Duration, try func() (bool, error)) error {
	began := time.Now()
	for n := range tries {
		if got, err := try(); got || err != nil {
			return err
		}
		if n == tries-1 || time.Since(began) > lockFor {
			break
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return ErrDuplicate
}

// Place says how far a submission had come when it failed of err, where the server itself has not said so. A nil submission is a
// control statement.
func (s *Submission) Place(out *engine.Error, err error) {
	switch {
	case s == nil:
		if out.Code == "" && (Refused(err) || secure.Failed(out.Err)) {
			out.Phase = engine.NotSent
		}
	case !s.Sent():
		out.Phase = engine.NotSent
		switch {
		case s.Expired() || errors.Is(err, engine.ErrGuardExpired):
			out.Err = engine.ErrGuardExpired
		case errors.Is(err, ErrDuplicate):
			out.Phase = engine.SentUnknown // not this one, but the other
		}
	case s.Expired() || errors.Is(err, engine.ErrGuardExpired):
		out.Err = errHalfSent // whoever reads ErrGuardExpired may send it again
	}
}

// Refused says that nobody listens at the address. A dial that times out says nothing of what runs there.
func Refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
