package spark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
	"github.com/pointsman/pointsman/pkg/event"
)

// rows is one operation and its result. Next, Values, Stats and Close belong to one goroutine; halt may come from another.
type rows struct {
	engine  *Engine
	attempt string
	names   names
	guard   *guard
	run     context.Context // ends with the client's life, or when the operation is halted
	drop    context.CancelCauseFunc
	unhook  func() bool
	conn    *grpc.ClientConn // of the statement alone
	limit   *time.Timer
	server  string // the server's own name of the session
	started time.Time

	stream   connect.Responses
	leave    context.CancelFunc // ends the stream
	broken   error              // what the stream could not be had for
	quiet    time.Duration      // how long the stream may be without a response
	attached bool               // to what was started before
	answered bool               // the server has the operation
	foreign  bool               // somebody else's operation has this name
	columns  []event.Column
	types    []*connect.DataType
	batch    batch
	row      []any // the current one, once it was read
	count    int64
	err      *engine.Error

	mu       sync.Mutex
	last     string // the last response
	progress *connect.ExecutePlanResponse_ExecutionProgress

	over        atomic.Bool // the server has said that it is over
	halting     sync.Once
	halted      atomic.Bool
	unconfirmed error
	finished    sync.Once
}

var (
	errReaderLeft = errors.New("the result was closed before its end")
	errForgotten  = errors.New("the statement never reached the server")
	errQuiet      = errors.New("nothing has come for a while")
)

func (e *Engine) newRows(attempt string, g *guard) (*rows, error) {
	r := &rows{engine: e, attempt: attempt, names: namesOf(attempt), guard: g, unhook: func() bool { return true }, leave: func() {}, quiet: quietFor}
	var err error
	if r.conn, err = e.dial(guarding(e.secure, g)); err != nil {
		return nil, err
	}
	r.run, r.drop = context.WithCancelCause(e.life)
	context.AfterFunc(r.run, func() { _ = r.conn.Close() })
	return r, nil
}

// attach takes another stream of the operation's responses.
func (r *rows) attach(open func(context.Context) (connect.Responses, error)) error {
	r.leave()
	ctx, cancel := context.WithCancel(r.engine.authorized(r.run))
	r.leave, r.broken = cancel, nil
	stream, err := open(ctx)
	r.stream = stream
	return err
}

// again follows the operation from behind the last response that was had. The first connection is given up: it carries the
// statement and nothing else.
func (r *rows) again() {
	r.attached = true
	_ = r.conn.Close()
	r.broken = r.attach(func(ctx context.Context) (connect.Responses, error) {
		last, _ := r.known()
		return r.engine.client().Reattach(ctx, r.engine.reattach(r.names, last))
	})
}

func (e *Engine) reattach(n names, last string) *connect.ReattachExecuteRequest {
	request := &connect.ReattachExecuteRequest{SessionId: n.session, UserContext: e.user(), OperationId: n.operation, ClientType: new(clientType)}
	if last != "" {
		request.LastResponseId = new(last)
	}
	return request
}

// known is the last response that was had, and for how much longer the operation must not be interrupted.
func (r *rows) known() (last string, young time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.progress.GetStages()) == 0 {
		young = tender - time.Since(r.started)
	}
	return r.last, young
}

// next waits for a response of the stream. One that stays silent is given up, after ever longer times.
func (r *rows) next() (*connect.ExecutePlanResponse, error) {
	if r.broken != nil {
		return nil, r.broken
	}
	var silent atomic.Bool
	leave := r.leave
	timer := time.AfterFunc(r.quiet, func() { silent.Store(true); leave() })
	defer timer.Stop()
	response, err := r.stream.Recv()
	switch {
	case err == nil:
		r.quiet = quietFor
	case silent.Load():
		r.quiet = min(2*r.quiet, mostQuiet)
		return nil, errQuiet
	}
	return response, err
}

// knock asks the server anything at all, so that a connection that is dead as well is not the one that is used next.
func (e *Engine) knock(ctx context.Context, n names) {
	ctx, cancel := e.asked(ctx, knockWithin)
	defer cancel()
	_, _ = e.probe(ctx, n) // whoever asks next gets the same answer
}

// receive waits for the next response and takes it. Streams that end or break before the operation does are taken up again.
func (r *rows) receive() *engine.Error {
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		response, err := r.next()
		if err == nil {
			return r.take(response)
		}
		f, told := faultOf(err)
		switch {
		case r.run.Err() != nil:
			return r.engine.wrap(context.Cause(r.run))
		case errors.Is(err, errQuiet) && r.guard.WasSent():
			began = time.Now() // nothing was refused: the operation is still there, as far as is known
			r.engine.knock(r.run, r.names)
			r.again()
			continue
		case errors.Is(err, io.EOF), told && f.is(classDisconnected): // each stream has an end, or somebody else looks
		case told:
			return r.refused(f)
		case !r.guard.WasSent():
			if r.guard.TooLate() {
				err = engine.ErrGuardExpired
			}
			return r.unsent(err)
		case codeOf(err) != "" || time.Since(began) > r.engine.cfg.RetryFor:
			return &engine.Error{Engine: Kind, Code: codeOf(err), Phase: engine.SentUnknown, Err: r.engine.said(err)}
		}
		if !errors.Is(err, io.EOF) || time.Since(began) < time.Second {
			if err := pause(r.run, wait); err != nil {
				return r.engine.wrap(err)
			}
		}
		r.again()
	}
}

// refused is the end of an operation by the server's own word, or the server's word that there is none.
func (r *rows) refused(f fault) *engine.Error {
	switch {
	case f.is(classExists), !r.attached && (f.is(classClosed) || f.is(classAbandoned)):
		// The name of the attempt has been used before, and this statement was not started.
		r.foreign = true
		return f.used()
	case !r.attached && f.is(classChanged):
		r.foreign = true // the server was started anew since the session was made, and starts nothing in another one
		return f.error(engine.NotSent)
	case r.attached && f.is(classNotFound) && !r.answered:
		return r.forgotten(f)
	case r.attached && (f.is(classNotFound) || f.is(classNoSession) || f.is(classChanged)):
		return f.error(engine.SentUnknown) // the server was started anew
	case r.attached && (f.is(classAbandoned) || f.is(classClosed)):
		r.foreign = true // somebody has stopped it and closed its session
		r.over.Store(true)
		return f.error(engine.Answered)
	}
	r.over.Store(true)
	return r.engine.detailed(r.run, r.names.session, f).error(engine.Answered)
}

// forgotten is a statement whose connection broke and that the server does not know. It may still be on its way; in a session that
// is closed it is not started any more, and then it is sure that nothing has run.
func (r *rows) forgotten(f fault) *engine.Error {
	ctx, cancel := context.WithTimeout(r.engine.authorized(r.engine.life), stopWithin)
	defer cancel()
	r.foreign = true
	if err := r.engine.release(ctx, r.names.session, false); err != nil {
		return f.error(engine.SentUnknown)
	}
	return &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: errForgotten}
}

// take keeps what a response says.
func (r *rows) take(m *connect.ExecutePlanResponse) *engine.Error {
	r.answered = true
	r.mu.Lock()
	if id := m.GetResponseId(); id != "" {
		r.last = id
	}
	if p := m.GetExecutionProgress(); p != nil {
		r.progress = p
	}
	r.mu.Unlock()
	if s := m.GetSchema().GetStruct(); s != nil && r.columns == nil {
		if n := len(s.GetFields()); n > engine.MostColumns {
			return r.unreadable(fmt.Errorf("%w: %d", engine.ErrColumns, n))
		}
		for _, f := range s.GetFields() {
			r.columns = append(r.columns, event.Column{Name: f.GetName(), Type: typeName(f.GetDataType())})
			r.types = append(r.types, f.GetDataType())
		}
	}
	if b := m.GetArrowBatch(); b != nil {
		if err := r.batch.load(b, len(r.columns)); err != nil {
			return r.unreadable(err)
		}
	}
	if m.GetResultComplete() != nil {
		r.over.Store(true)
	}
	return nil
}

func (r *rows) unreadable(err error) *engine.Error {
	return &engine.Error{Engine: Kind, Phase: engine.Answered, Err: fmt.Errorf("reading the result: %w", err)}
}

// Columns names the result's columns.
func (r *rows) Columns() []event.Column { return r.columns }

// Next moves to the next row.
func (r *rows) Next() bool {
	r.row = nil
	for r.err == nil {
		switch {
		case r.batch.next():
			r.count++
			return true
		case r.over.Load():
			r.finish()
			return false
		}
		if err := r.receive(); err != nil {
			r.err = r.settle(err)
		}
	}
	return false
}

// Values are the current row's values.
func (r *rows) Values() ([]any, error) {
	if r.row == nil {
		row, err := r.batch.values(r.types)
		if err != nil {
			return nil, r.unreadable(err)
		}
		r.row = row
	}
	return r.row, nil
}

// Err is what ended the rows before their end.
func (r *rows) Err() error {
	if r.err == nil {
		return nil // a nil *engine.Error would be an error
	}
	return r.err
}

// Close ends the operation when it still runs.
func (r *rows) Close() error {
	if !r.over.Load() && r.engine.life.Err() == nil && r.err == nil {
		_ = r.halt(errReaderLeft) // a server that can't be reached gives it up by itself, as nobody is attached
	}
	r.finish()
	return nil
}

// Stats is what the server said of the run.
func (r *rows) Stats() event.Stats {
	s := r.seen()
	if r.over.Load() && !r.batch.more() && r.err == nil {
		n := r.count
		s.ResultRows = &n
	}
	return s
}

// seen is what the server said of the run while it went on.
func (r *rows) seen() event.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s event.Stats
	var read int64
	for _, stage := range r.progress.GetStages() {
		read += stage.GetInputBytesRead()
	}
	if read > 0 { // it is zero too where nothing is counted
		s.ReadBytes = &read
	}
	return s
}

var _ engine.Rows = (*rows)(nil)
