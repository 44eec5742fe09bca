package trino

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// Codes of Trino's that the adapter itself has to name.
const (
	codeCanceled        = 3
	codeInvalidProperty = 14
	codeSchemaNotFound  = 45
)

// httpCode names an HTTP status beside Trino's own codes, which are numbers.
func httpCode(status int) string { return "http_" + strconv.Itoa(status) }

// wrap gives an error its native code and says how far the submission had come. sub is nil for control requests only: a refused
// connection says of them that nobody is there, and of a query that was started nothing.
func (e *Engine) wrap(err error, sub *wire.Submission) *engine.Error {
	if done, ok := errors.AsType[*engine.Error](err); ok {
		return done
	}
	out := &engine.Error{Engine: Kind, Phase: engine.SentUnknown, Err: e.plain(err)}
	status, _ := errors.AsType[*statusError](err)
	if status != nil {
		out.Code, out.Name = httpCode(status.status), http.StatusText(status.status)
	}
	switch {
	case sub != nil && !sub.Sent():
		out.Phase = engine.NotSent
		if sub.Expired() || errors.Is(err, engine.ErrGuardExpired) {
			out.Err = engine.ErrGuardExpired
		}
	case errors.Is(err, engine.ErrGuardExpired):
		out.Err = errHalfSent // whoever reads ErrGuardExpired may send it again
	case status != nil && status.status < 500 && status.status != http.StatusTooManyRequests:
		out.Phase = engine.Answered
	case sub == nil && (wire.Refused(err) || secure.Failed(err)):
		out.Phase = engine.NotSent
	}
	return out
}

var errHalfSent = errors.New("the connection broke while the query was being started, and its guard ran out before another one was there")

// plain takes the request's address out of an error: it holds the slug that lets anybody read the query's pages.
func (e *Engine) plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("talking to %s: %w", e.base.Host, u.Err)
	}
	return err
}

// failed is what the server says of a query that failed.
func (q *queryError) failed() *engine.Error {
	return &engine.Error{
		Engine: Kind, Code: strconv.Itoa(q.ErrorCode), Name: q.ErrorName, Type: q.ErrorType, Phase: engine.Answered, Err: errors.New(q.Message),
	}
}

// stopped is the end of a query that this client has stopped. Its code is there only if the server has confirmed it.
func (e *Engine) stopped(cause, unconfirmed error) *engine.Error {
	if unconfirmed != nil {
		return &engine.Error{
			Engine: Kind, Phase: engine.SentUnknown,
			Err: fmt.Errorf("%w; the server did not confirm that it stopped: %w", cause, e.plain(unconfirmed)),
		}
	}
	return &engine.Error{Engine: Kind, Code: strconv.Itoa(codeCanceled), Name: "USER_CANCELED", Phase: engine.Answered, Err: cause}
}

// again says that a request for a page may be repeated: the server keeps the last page for that. TLS that was not agreed on stays so.
func again(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		switch status.status {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	return !errors.Is(err, engine.ErrGuardExpired) && !errors.Is(err, context.Canceled) && !secure.Failed(err)
}
