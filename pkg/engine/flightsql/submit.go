package flightsql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// queries are the classes of statements that have rows. The protocol wants to be told.
var queries = []shape.Statement{shape.Select, shape.Show, shape.Explain, shape.Call, shape.Execute, shape.Other, ""}

// Submit sends the statement once and returns with its first rows, or its end. When ctx ends, now or while rows are read, it is
// stopped at the server, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	g := newGuard(q.SubmitBefore)
	if ctx.Err() != nil {
		return nil, &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: context.Cause(ctx)}
	}
	if g.TooLate() {
		return nil, &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: engine.ErrGuardExpired}
	}
	headers, err := e.headers(q)
	if err != nil {
		return nil, &engine.Error{Engine: Kind, Code: "3", Name: "INVALID_ARGUMENT", Phase: engine.NotSent, Err: err}
	}
	for retried := false; ; retried = true {
		r, err := e.submit(ctx, q, g, headers)
		if err == nil {
			return r, nil
		}
		if retried || !r.refusedLogin { // a server that did not let it in has not run it
			return nil, err
		}
		g = newGuard(q.SubmitBefore)
	}
}

func (e *Engine) submit(ctx context.Context, q engine.Query, g *guard, headers metadata.MD) (*rows, error) {
	r := &rows{engine: e, attempt: q.ID, guard: g, began: time.Now(), unhook: func() bool { return true }}
	asked, cancel := e.asked(ctx, answerWithin)
	login, err := e.login(asked)
	cancel()
	if err != nil {
		failed := e.wrap(err, &call{}, nil)
		failed.Phase = engine.NotSent
		switch {
		case ctx.Err() != nil:
			failed.Code, failed.Name, failed.Err = "", "", context.Cause(ctx)
		case g.TooLate():
			failed.Code, failed.Name, failed.Err = "", "", engine.ErrGuardExpired
		}
		return r, failed
	}
	r.headers = metadata.Join(headers, login)
	r.run, r.cancel = context.WithCancelCause(e.life)
	g.refuse = r.cancel
	counted := http2.Above(guarding(e.credentials(), g), func(c net.Conn) net.Conn {
		r.dialled.Add(1)
		return c
	})
	if r.conn, err = e.dial(e.cfg.Addr, counted); err != nil {
		r.cancel(err)
		return r, &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: err}
	}
	r.watch(ctx, q.MaxExecution)
	if q.ID != "" {
		e.mine.Store(q.ID, r)
	}
	if err := r.start(q); err != nil {
		failed := r.settle(err)
		r.refusedLogin = failed.Phase == engine.Answered && e.outdated(err, r.call)
		r.release()
		return r, failed
	}
	return r, nil
}

// commented puts the attempt id in front of the statement, where every server that shows its statements shows it.
func commented(q engine.Query) string {
	if q.ID == "" {
		return q.SQL
	}
	return "/* pointsman:" + wire.Name(q.ID) + " */ " + q.SQL
}

// start sends the statement and reads up to its first rows or its end.
func (r *rows) start(q engine.Query) error {
	client := flightsql.Client{Client: flight.NewClientFromConn(r.conn, nil), Alloc: memory.DefaultAllocator}
	of := shape.Of(q.SQL, lex.Auto)
	if !q.ReadOnly && !slices.Contains(queries, of.Statement) {
		_, err := client.ExecuteUpdate(r.context(), commented(q))
		if err == nil {
			r.finish()
			return nil
		}
		if !r.call.answered.Load() || status.Code(err) != codes.Unimplemented {
			return err
		}
		r.guard.next(false) // the server takes every statement as a query, and has not run this one
	}
	info, err := client.Execute(r.context(), commented(q))
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.info, r.endpoints = info, info.GetEndpoint()
	r.mu.Unlock()
	r.asked = r.dialled.Load()
	if r.guard.TooLate() { // nothing asks for rows any more
		return errHalfSent
	}
	r.describe(info)
	more, err := r.load()
	if err == nil && !more {
		r.finish()
	}
	return err
}

// open asks for the rows of the next endpoint.
func (r *rows) open() error {
	r.mu.Lock()
	end := r.endpoints[0]
	r.endpoints = r.endpoints[1:]
	r.mu.Unlock()
	conn, err := r.connTo(end.GetLocation())
	if err != nil {
		return err
	}
	r.guard.next(r.started)
	r.redeems = conn == r.conn
	client := flightsql.Client{Client: flight.NewClientFromConn(conn, nil), Alloc: memory.DefaultAllocator}
	reader, err := client.DoGet(r.context(), end.GetTicket())
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: rows without a schema", errGarbage)
	}
	if err != nil {
		return err
	}
	r.started = true
	r.reader = reader
	if n := reader.Schema().NumFields(); n > engine.MostColumns {
		return fmt.Errorf("%w: %d", engine.ErrColumns, n)
	}
	if r.columns == nil {
		r.columns = columnsOf(reader.Schema())
	}
	return nil
}

const reuseConnection = "arrow-flight-reuse-connection"

var errLocation = errors.New("the server points to a location that can't be used")

// connTo is a connection to where an endpoint's rows are. A location without encryption does not get what is sent over TLS.
func (r *rows) connTo(locations []*flight.Location) (*grpc.ClientConn, error) {
	if len(locations) == 0 {
		return r.conn, nil
	}
	for _, l := range locations {
		u, err := url.Parse(l.GetUri())
		if err != nil {
			continue
		}
		var creds credentials.TransportCredentials
		switch {
		case u.Scheme == reuseConnection:
			return r.conn, nil
		case (u.Scheme == "grpc" || u.Scheme == "grpc+tcp") && r.engine.cfg.TLS == nil:
			creds = insecure.NewCredentials()
		case u.Scheme == "grpc+tls" && r.engine.cfg.TLS != nil:
			cfg := r.engine.cfg.TLS.Clone()
			cfg.ServerName = u.Hostname()
			creds = credentials.NewTLS(cfg)
		default:
			continue
		}
		if u.Host == "" || u.Port() == "" {
			continue
		}
		if u.Host == r.engine.cfg.Addr {
			return r.conn, nil
		}
		conn, err := r.engine.dial(u.Host, guarding(creds, r.guard))
		if err != nil {
			return nil, err
		}
		r.others = append(r.others, conn)
		return conn, nil
	}
	return nil, fmt.Errorf("%w: %s", errLocation, locations[0].GetUri())
}
