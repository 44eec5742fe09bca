package postgres

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
)

// SQLSTATEs that mean several things.
const (
	codeCancelled = "57014"
	codeShutdown  = "57P01"
)

// wrap gives an error its SQLSTATE and says how far the submission had come. r is nil for control statements.
func (e *Engine) wrap(err error, r *run) *engine.Error {
	if done, ok := errors.AsType[*engine.Error](err); ok {
		return done
	}
	out := &engine.Error{Engine: Kind, Phase: engine.SentUnknown, Err: err}
	if said, ok := pgError(err); ok {
		out.Phase, out.Code = engine.Answered, said.Code
		out.Err = errors.New(e.message(said, r))
	} else if bye := r.farewell(); bye != nil {
		out.Code, out.Err = bye.Code, errors.New(bye.Message) // it may have been over just before that
	} else if failed, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		out.Err = secure.Explain(failed, "sslrootcert")                        // names user and database, never the password
		if strings.Contains(failed.Error(), "server refused TLS connection") { // the driver has no other word for it
			out.Err = secure.NoTLS(failed)
		}
	}
	var sub *wire.Submission
	if r != nil {
		sub = r.sub
	}
	sub.Place(out, err)
	return out
}

// farewell is what the server said before it cut the connection.
func (r *run) farewell() *pgconn.Notice {
	if r == nil || r.session == nil {
		return nil
	}
	return r.session.farewell.Load()
}

// message is what the server said, in one text.
func (e *Engine) message(said *pgconn.PgError, r *run) string {
	var b strings.Builder
	b.WriteString(cmp.Or(said.Message, "the server gives an error without a word"))
	if said.Detail != "" {
		b.WriteString("; " + said.Detail)
	}
	if said.Hint != "" {
		b.WriteString("; hint: " + said.Hint)
	}
	switch {
	case said.Code == codeCancelled && r != nil && r.limit > 0 && time.Since(r.started) >= r.limit && !strings.Contains(said.Message, "user request"):
		// The server's language may be another one, and the table goes by this.
		if !strings.Contains(said.Message, "statement timeout") {
			b.WriteString(" (statement timeout)")
		}
	case said.Code == codeShutdown && r != nil && e.goingDown():
		b.WriteString(" (the server is shutting down)")
	}
	return b.String()
}

// goingDown tells an operator who ended one session from a server that ends all: that one takes no connections any more.
func (e *Engine) goingDown() bool {
	ctx, cancel := context.WithTimeout(e.life, lookUpWithin)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, e.conn.Copy())
	if err != nil {
		return true
	}
	_ = conn.Close(ctx)
	return false
}
