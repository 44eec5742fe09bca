package executor

import (
	"context"
	"errors"
	"time"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/services/executor/result"
)

// stored is how reading a result went.
type stored struct {
	result *event.Result
	sink   *result.Sink
	stats  event.Stats
	err    error // the engine's
	local  error // ours: disk full, or a value that can't be encoded
}

// deliver stores the rows.
func (y *try) deliver(ctx context.Context) attempt.Event {
	s := y.running
	a := <-s.answered // follow has put it back
	inline, write := int64(y.p.app.inlineLimit()), !y.t.current.ReadOnly
	y.p.app.leftovers.Go(func() {
		defer close(s.ended)
		out := y.store(s, a.rows, inline, write)
		s.last = out.err
		s.stored <- out
	})
	w := y.watchProgress()
	defer w.stop()
	for {
		select {
		case r := <-s.stored:
			<-s.ended
			return y.delivered(r)
		case <-w.due():
			w.ask(ctx)
		case seen := <-w.answers:
			if e := y.progress(ctx, w, seen); e != "" {
				return e
			}
		case <-y.t.cancelled:
			return attempt.CancelWished
		case <-y.late.C:
			return attempt.DeadlinePassed
		case <-ctx.Done():
			return attempt.Abandoned
		}
	}
}

// delivered takes how storing the rows went.
func (y *try) delivered(r stored) attempt.Event {
	y.times.done = time.Now()
	y.engine = r.stats
	switch {
	case r.local != nil:
		y.unstored = true
		f := failure.Of(failure.Internal, "storing the result: "+r.local.Error())
		f.Hint = "The statement ran, and the executor could not store what it gave. The platform team has to make room in its folder of results, or to mend it."
		if errors.Is(r.local, rows.ErrUnfit) { // as it would be from every engine
			f = failure.Of(failure.Semantic, f.Message)
			f.Hint = "A value of the result has no place in the format that was asked for. Ask for another resultFormat, or cast the column to text."
		}
		y.failure = &f
		return attempt.DeliveryFailed
	case r.err != nil:
		return y.failed(r.err)
	}
	y.result, y.sink = r.result, r.sink
	return attempt.Delivered
}

// store reads the rows to their end, or to the size cap. Of a query that was let go nothing is stored, and it is read on so
// that the engine is not held up. A write is read to its end in any case: one that is cut short is stopped, and an engine may take back
// what it did.
func (y *try) store(s *submission, got engine.Rows, inline int64, write bool) (out stored) {
	sink := y.p.app.results.New(y.id, rows.Format(y.t.first.Task.ResultFormat), got.Columns(), inline)
	defer func() {
		if out.result == nil {
			sink.Discard()
		}
	}()
	row := got.Values
	if lender, ok := got.(engine.Lender); ok {
		row = lender.Lent // a sink keeps nothing
	}
	full := false
	for (write || !full && out.local == nil) && got.Next() {
		if full || out.local != nil || s.letGo.Load() {
			continue
		}
		values, err := row()
		if err == nil {
			full, err = sink.Add(values)
		}
		if _, ok := errors.AsType[*engine.Error](err); ok {
			out.err = err
			_ = got.Close()
			return out
		}
		out.local = err
	}
	out.err = got.Err()
	_ = got.Close() // ends a query that was cut short
	out.stats = got.Stats()
	if out.err != nil || out.local != nil || s.letGo.Load() {
		return out
	}
	if out.result, out.local = sink.Finish(time.Now()); out.local != nil {
		out.result = nil
	}
	out.sink = sink
	return out
}
