package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// Codes that do not say all, such as who stopped it.
const (
	codeInterrupted = 1317
	codeKilled      = 1927 // MariaDB
	codeDenied      = 1045
)

// wrap gives an error its native code and says how far the submission had come. sub is nil for control statements.
func (e *Engine) wrap(err error, sub *wire.Submission) *engine.Error {
	if done, ok := errors.AsType[*engine.Error](err); ok {
		return done
	}
	out := &engine.Error{Engine: string(e.traits().flavour), Phase: engine.SentUnknown, Err: err}
	if said, ok := errors.AsType[*mysqldriver.MySQLError](err); ok {
		out.Phase, out.Code = engine.Answered, strconv.Itoa(int(said.Number))
		message := said.Message
		if sub.Sent() && (said.Number == codeInterrupted || said.Number == codeKilled) && e.goingDown() {
			message += " (the server is shutting down)"
		}
		if said.Number == codeDenied && e.cfg.TLS == nil {
			message += " (a server that takes nobody without TLS says this too)" // MariaDB, with require_secure_transport
		}
		out.Err = errors.New(message)
	} else if broken(err) {
		out.Err = errors.New("the connection to the server broke")
	} else if errors.Is(err, mysqldriver.ErrNoTLS) {
		out.Err = secure.NoTLS(err)
	} else {
		out.Err = secure.Explain(err, "ca")
	}
	sub.Place(out, err)
	return out
}

// broken says that it was the connection, as far as the driver tells.
func broken(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysqldriver.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone)
}

// goingDown tells an operator who killed one statement from a server that ends all: that one takes no connections any more.
func (e *Engine) goingDown() bool {
	ctx, cancel := context.WithTimeout(e.life, e.cfg.DialTimeout)
	defer cancel()
	connector, err := mysqldriver.NewConnector(e.conn.Clone())
	if err != nil {
		return false
	}
	conn, err := connect(ctx, connector)
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}
