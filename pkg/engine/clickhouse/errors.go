package clickhouse

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// formatCode is ClickHouse's FORMAT_IS_NOT_SUITABLE_FOR_OUTPUT, which is what the statement's author would get elsewhere.
const formatCode = "399"

var errHalfSent = errors.New("the connection broke while the query was being sent, and its guard ran out before another one was there")

// wrap gives an error its native code and says how far the submission had come. sub is nil for control statements.
func (e *Engine) wrap(err error, sub *submission) *engine.Error {
	if done, ok := errors.AsType[*engine.Error](err); ok {
		return done
	}
	out := &engine.Error{Engine: Kind, Phase: engine.SentUnknown, Err: secure.Explain(plain(err, e.cfg.Addrs), "ca")}
	var (
		exception *driver.Exception
		status    *driver.HTTPError
		format    *formatError
		unknown   *column.UnsupportedColumnTypeError
		misread   *column.Error
	)
	switch {
	case errors.As(err, &exception):
		out.Phase = engine.Answered
		out.Code, out.Name = strconv.Itoa(int(exception.Code)), exception.CodeName
		out.Err = errors.New(strings.TrimSpace(exception.Message))
	case errors.As(err, &format):
		out.Phase, out.Code, out.Err = engine.Answered, formatCode, format
	case errors.As(err, &unknown):
		return unreadable(unknown)
	case errors.As(err, &misread):
		return unreadable(misread)
	case errors.Is(err, errGarbage) && e.cfg.Protocol == HTTP: // what is decoded there has passed its checksum: it is what the server has sent
		return unreadable(err)
	case errors.As(err, &status) && status.StatusCode < 500:
		out.Phase = engine.Answered
	case sub == nil && (refused(err) || secure.Failed(out.Err)):
		out.Phase = engine.NotSent
	}
	if sub != nil && sub.sent.Load() && errors.Is(err, engine.ErrGuardExpired) {
		out.Err = errHalfSent // whoever reads ErrGuardExpired may send it again
	}
	if sub != nil && !sub.sent.Load() {
		out.Phase = engine.NotSent
		if sub.expired.Load() || errors.Is(err, engine.ErrGuardExpired) {
			out.Err = engine.ErrGuardExpired
		}
	}
	return out
}

// unreadable is the end of a statement whose result this driver can't read, neither here nor from another server. Its author can ask for
// another one.
func unreadable(err error) *engine.Error {
	return &engine.Error{
		Engine: Kind, Code: formatCode, Phase: engine.Answered, Err: fmt.Errorf("the result can't be read, cast what is of an unusual type to String: %w", err),
	}
}

// refused says that nobody listens at the address. A dial that times out says nothing of what runs there.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// plain takes the request's address out of an error: it holds the user and every setting, and says nothing to a reader.
func plain(err error, addrs []string) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("talking to %s: %w", strings.Join(addrs, ", "), u.Err)
	}
	return err
}
