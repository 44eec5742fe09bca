package spark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

const zoneSetting = "spark.sql.session.timeZone"

// Submit makes the attempt's session, starts the statement in it and returns with its first rows, or its end. When ctx ends, now or
// while rows are read, the operation is stopped at the server, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	rows, err := e.submit(ctx, q)
	if err != nil {
		return nil, err // a nil *rows would be a result
	}
	return rows, nil
}

func (e *Engine) submit(ctx context.Context, q engine.Query) (*rows, error) {
	g := newGuard(q.SubmitBefore)
	if err := ctx.Err(); err != nil {
		return nil, &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: context.Cause(ctx)}
	}
	if g.TooLate() {
		return nil, &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: engine.ErrGuardExpired}
	}
	r, err := e.newRows(q.ID, g)
	if err != nil {
		return nil, &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: err}
	}
	r.conn.Connect() // meanwhile the session is made
	r.unhook = context.AfterFunc(ctx, func() { _ = r.halt(context.Cause(ctx)) })
	failed := r.prepare(q)
	if failed == nil {
		failed = r.start(q)
	}
	if failed != nil {
		return nil, r.settle(failed)
	}
	return r, nil
}

// prepare makes the session with its settings and its schema. Nothing of the statement is sent.
func (r *rows) prepare(q engine.Query) *engine.Error {
	server, err := r.engine.configure(r.run, r.names.session, q.Settings)
	if err == nil {
		r.server = server
		database := q.Database
		if database == "" {
			database = r.engine.cfg.Database
		}
		if database != "" {
			err = r.engine.command(r.run, r.names.session, "USE "+quoted(database))
		}
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(r.run); cause != nil {
		return &engine.Error{Engine: Kind, Phase: engine.NotSent, Err: cause}
	}
	failed := r.engine.wrap(err)
	f, told := faultOf(err)
	switch {
	case told && f.gone(): // the session was closed: the attempt has run, or was given up
		return f.used()
	case told:
		return r.engine.detailed(r.run, r.names.session, f).error(engine.Answered)
	case failed.Phase == engine.SentUnknown:
		failed.Phase = engine.NotSent
	}
	return failed
}

// configure sets what holds in a session, which is made if it is not there, and gives the server's own name of it.
func (e *Engine) configure(ctx context.Context, session string, settings map[string]string) (string, error) {
	set := &connect.ConfigRequest_Set{}
	if _, own := settings[zoneSetting]; !own {
		set.Pairs = append(set.Pairs, &connect.KeyValue{Key: zoneSetting, Value: new("UTC")}) // else it is the server's own
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		set.Pairs = append(set.Pairs, &connect.KeyValue{Key: name, Value: new(settings[name])})
	}
	ctx, cancel := e.asked(ctx, answerWithin)
	defer cancel()
	began := time.Now()
	dead := time.AfterFunc(sessionWithin, func() {
		if e.control.Silent(began) {
			cancel()
		}
	})
	defer dead.Stop()
	answer, err := e.client().Config(ctx, &connect.ConfigRequest{
		SessionId: session, UserContext: e.user(), ClientType: new(clientType),
		Operation: &connect.ConfigRequest_Operation{OpType: &connect.ConfigRequest_Operation_Set{Set: set}},
	})
	if err != nil {
		return "", err
	}
	return answer.GetServerSideSessionId(), nil
}

// quoted makes a name, or names with dots between them, what SQL takes as such.
func quoted(database string) string {
	parts := strings.Split(database, ".")
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" }) // a catalog alone ends in a dot
	for i, p := range parts {
		parts[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	return strings.Join(parts, ".")
}

// command runs a statement of our own to its end.
func (e *Engine) command(ctx context.Context, session, sql string) error {
	ctx, cancel := e.asked(ctx, answerWithin)
	defer cancel()
	responses, err := e.client().Execute(ctx, &connect.ExecutePlanRequest{
		SessionId: session, UserContext: e.user(), OperationId: new(uuid.NewString()), ClientType: new(clientType), Plan: plan(sql),
	})
	for err == nil {
		_, err = responses.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// plan wraps a statement. Each plan is told from every other by its number, also from one with the same text: the server attaches
// who sends the plan of a running operation again, and refuses one with another plan. So only what the connection itself sends
// twice is taken for the same, and an attempt never runs twice at once.
func plan(sql string) *connect.Plan {
	return &connect.Plan{OpType: &connect.Plan_Root{Root: &connect.Relation{
		Common:  &connect.RelationCommon{PlanId: new(rand.Int64())},
		RelType: &connect.Relation_Sql{Sql: &connect.SQL{Query: sql}},
	}}}
}

// start sends the statement and reads up to its first rows or its end.
func (r *rows) start(q engine.Query) *engine.Error {
	request := &connect.ExecutePlanRequest{
		SessionId: r.names.session, UserContext: r.engine.user(), OperationId: new(r.names.operation), ClientType: new(clientType),
		Plan: plan(q.SQL),
		RequestOptions: []*connect.ExecutePlanRequest_RequestOption{{
			RequestOption: &connect.ExecutePlanRequest_RequestOption_ReattachOptions{ReattachOptions: &connect.ReattachOptions{Reattachable: true}},
		}},
	}
	if r.server != "" {
		request.ClientObservedServerSideSessionId = new(r.server)
	}
	if q.ID != "" {
		request.Tags = []string{wire.Name(q.ID)}
	}
	if r.guard.TooLate() {
		return r.unsent(engine.ErrGuardExpired)
	}
	r.mu.Lock()
	r.started = time.Now()
	r.mu.Unlock()
	if q.MaxExecution > 0 {
		r.limit = time.AfterFunc(q.MaxExecution, func() { _ = r.halt(timeLimit(q.MaxExecution)) })
	}
	err := r.attach(func(ctx context.Context) (connect.Responses, error) {
		return connect.Client{Conn: r.conn}.Execute(ctx, request)
	})
	if err != nil {
		r.broken = err
	}
	for !r.batch.more() && !r.over.Load() {
		if err := r.receive(); err != nil {
			return err
		}
		if r.attempt != "" && r.answered {
			r.engine.mine.Store(r.attempt, r)
		}
	}
	return nil
}

// unsent is the error of a statement of which nothing has left.
func (r *rows) unsent(err error) *engine.Error {
	return &engine.Error{Engine: Kind, Code: codeOf(err), Phase: engine.NotSent, Err: fmt.Errorf("starting the statement: %w", r.engine.said(err))}
}
