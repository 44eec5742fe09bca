package trino

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// ClientTags is the setting of a resource profile that adds client tags, which choose the resource group. All other settings
// are session properties.
const ClientTags = "client_tags"

const statementPath = "/v1/statement"

// Submit posts the query, starts it within its guard and returns with its first rows, or its end. When ctx ends, now or while
// rows are read, the query is killed at the server, not only dropped here.
func (e *Engine) Submit(ctx context.Context, q engine.Query) (engine.Rows, error) {
	rows, err := e.submit(ctx, q, true)
	if err != nil {
		return nil, err // a nil *rows would be a result
	}
	return rows, nil
}

func (e *Engine) submit(ctx context.Context, q engine.Query, once bool) (*rows, error) {
	sub := &wire.Submission{Before: q.SubmitBefore, Late: engine.ErrGuardExpired}
	if err := ctx.Err(); err != nil {
		return nil, e.wrap(context.Cause(ctx), sub)
	}
	if sub.TooLate() {
		return nil, e.wrap(engine.ErrGuardExpired, sub)
	}
	header, refused := e.session(q)
	if refused != nil {
		return nil, refused
	}
	r := newRows(e, q.ID, sub)
	r.unhook = context.AfterFunc(ctx, func() { _ = r.halt(context.Cause(ctx)) })
	failed := r.post(q, header, once)
	if failed == nil {
		failed = r.begin()
	}
	if failed != nil {
		return nil, r.settle(failed)
	}
	return r, nil
}

// post hands the query to the server, which does not start it yet. Meanwhile it is made sure that none with the same id runs.
func (r *rows) post(q engine.Query, header http.Header, once bool) *engine.Error {
	type found struct {
		twins []queryInfo
		err   error
	}
	look := make(chan found, 1)
	go func() {
		var f found
		if once {
			f.twins, f.err = r.engine.runs(r.run, q.ID, activeStates)
		}
		look <- f
	}()
	answer, err := r.engine.statement(r.run, http.MethodPost, statementPath, header, q.SQL)
	if err != nil && again(err) && !r.sub.TooLate() {
		// A connection that was kept and has died, most often. What was posted and not started does nothing.
		answer, err = r.engine.statement(r.run, http.MethodPost, statementPath, header, q.SQL)
	}
	twin := <-look
	if err == nil {
		r.take(answer)
	}
	switch {
	case err != nil:
		return r.engine.wrap(err, r.sub)
	case answer.Error != nil:
		return answer.Error.failed()
	case twin.err != nil:
		return r.engine.wrap(fmt.Errorf("making sure that the attempt does not run already: %w", twin.err), r.sub)
	case len(twin.twins) > 0:
		return &engine.Error{
			Engine: Kind, Phase: engine.SentUnknown,
			Err: fmt.Errorf("query %s runs with the same attempt id; this one was not started", twin.twins[0].QueryID),
		}
	}
	return nil
}

// session gives the headers of a query: who asks, where, with which properties, and for which attempt.
func (e *Engine) session(q engine.Query) (http.Header, *engine.Error) {
	h := e.header()
	database := q.Database
	if database == "" {
		database = e.cfg.Database
	}
	catalog, schema, both := strings.Cut(database, ".")
	if !both && q.Database != "" { // a schema alone is one of the default catalog
		if fixed, _, _ := strings.Cut(e.cfg.Database, "."); fixed != "" {
			catalog, schema = fixed, q.Database
		}
	}
	if strings.ContainsFunc(database, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil, &engine.Error{
			Engine: Kind, Code: strconv.Itoa(codeSchemaNotFound), Name: "SCHEMA_NOT_FOUND", Phase: engine.NotSent,
			Err: fmt.Errorf("no schema can be named %q", database),
		}
	}
	set(h, "Catalog", catalog)
	set(h, "Schema", schema)
	set(h, "Trace-Token", q.ID)
	set(h, "Time-Zone", "UTC") // else it is the server's own
	// Without it the server rounds times to milliseconds.
	set(h, "Client-Capabilities", "PARAMETRIC_DATETIME")

	properties := map[string]string{}
	tags := slices.Clone(e.cfg.ClientTags)
	for name, value := range q.Settings {
		if name == ClientTags {
			tags = append(tags, strings.Split(value, ",")...)
			continue
		}
		if !propertyName(name) {
			return nil, &engine.Error{
				Engine: Kind, Code: strconv.Itoa(codeInvalidProperty), Name: "INVALID_SESSION_PROPERTY", Phase: engine.NotSent,
				Err: fmt.Errorf("no session property can be named %q", name),
			}
		}
		properties[name] = value
	}
	if q.MaxMemoryBytes > 0 {
		// The first is looked at once a second over all nodes, the second at once by each node.
		limit := strconv.FormatInt(q.MaxMemoryBytes, 10) + "B"
		properties["query_max_memory"], properties["query_max_memory_per_node"] = limit, limit
	}
	if q.MaxExecution > 0 {
		properties["query_max_execution_time"] = strconv.FormatInt(max(q.MaxExecution.Milliseconds(), 1), 10) + "ms"
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		h.Add("X-Trino-Session", name+"="+escape(properties[name]))
	}
	if q.ID != "" {
		tags = append(tags, q.ID)
	}
	set(h, "Client-Tags", strings.Join(tags, ","))
	return h, nil
}

// header gives what every request carries.
func (e *Engine) header() http.Header {
	h := http.Header{}
	set(h, "User", e.cfg.User)
	set(h, "Source", e.cfg.Source)
	h.Set("User-Agent", "pointsman")
	if e.cfg.Password != "" {
		r := http.Request{Header: h}
		r.SetBasicAuth(e.cfg.User, e.cfg.Password)
	}
	return h
}

func set(h http.Header, name, value string) {
	if value != "" {
		h.Set("X-Trino-"+name, value)
	}
}

// propertyName says whether a session property, of the system or of a catalog, may have this name.
func propertyName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-')
	})
}

// escape encodes a property's value as the server reads it.
func escape(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }
