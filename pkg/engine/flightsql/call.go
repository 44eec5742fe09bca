package flightsql

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

// call is one call. gRPC makes statuses of its own for what happens to connections, with the codes that servers use too: only the
// trailers of an answer tell that the server itself has spoken.
type call struct{ answered atomic.Bool }

type callKey struct{}

func (c *call) in(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, c) }

// trailers notes which calls were answered.
type trailers struct{}

// TagRPC leaves the context as it is.
func (trailers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC notes the trailers.
func (trailers) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.InTrailer); ok {
		if c, ok := ctx.Value(callKey{}).(*call); ok {
			c.answered.Store(true)
		}
	}
}

// TagConn leaves the context as it is.
func (trailers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (trailers) HandleConn(context.Context, stats.ConnStats) {}

// headers are what goes along with every call of an attempt.
func (e *Engine) headers(q engine.Query) (metadata.MD, error) {
	md := metadata.MD{}
	for name, value := range q.Settings {
		if !headerName(name) {
			return nil, fmt.Errorf("the setting %q %w", name, ErrHeader)
		}
		md.Set(name, value)
	}
	database := q.Database
	if database == "" {
		database = e.cfg.Database
	}
	if database != "" {
		md.Set(e.cfg.DatabaseHeader, database)
	}
	if q.ID != "" {
		md.Set(HeaderAttempt, wire.Name(q.ID))
	}
	if q.MaxExecution > 0 {
		md.Set(HeaderTimeLimit, strconv.FormatInt(max(q.MaxExecution.Milliseconds(), 1), 10))
	}
	if q.MaxMemoryBytes > 0 {
		md.Set(HeaderMemory, strconv.FormatInt(q.MaxMemoryBytes, 10))
	}
	if q.ReadOnly {
		md.Set(HeaderReadOnly, "true")
	}
	return md, nil
}

// headerName says that a setting can be sent as a header that means nothing to gRPC itself.
func headerName(name string) bool {
	for _, reserved := range []string{"grpc-", "pointsman-", "authorization", "content-type", "user-agent", "te"} {
		if name == reserved || (strings.HasSuffix(reserved, "-") && strings.HasPrefix(name, reserved)) {
			return false
		}
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return name != "" && !strings.HasSuffix(name, "-bin")
}

// asked is a context for a call that is answered soon; it ends with the client too.
func (e *Engine) asked(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, within)
	stop := context.AfterFunc(e.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// do makes a control call. A token that the server does not know any more is renewed once.
func (e *Engine) do(ctx context.Context, question func(ctx context.Context) error) error {
	ctx, cancel := e.asked(ctx, answerWithin)
	defer cancel()
	for retried := false; ; retried = true {
		login, err := e.login(ctx)
		if err != nil {
			return err
		}
		var c call
		err = question(c.in(metadata.NewOutgoingContext(ctx, login)))
		if err == nil {
			return nil
		}
		if wrapped := e.wrap(err, &c, nil); retried || !e.outdated(err, &c) {
			return wrapped
		}
	}
}

// outdated forgets a token that the server does not know any more, and says that it is worth asking for another one.
func (e *Engine) outdated(err error, c *call) bool {
	if !c.answered.Load() || status.Code(err) != codes.Unauthenticated || e.cfg.User == "" {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	had := e.token != ""
	e.token = ""
	return had
}

// login gives the header with which calls are made.
func (e *Engine) login(ctx context.Context) (metadata.MD, error) {
	switch {
	case e.cfg.Password == "":
		return metadata.MD{}, nil
	case e.cfg.User == "":
		return metadata.Pairs("authorization", "Bearer "+e.cfg.Password), nil
	}
	e.mu.Lock()
	token := e.token
	e.mu.Unlock()
	if token == "" {
		var err error
		if token, err = e.handshake(ctx); err != nil {
			return nil, err
		}
		e.mu.Lock()
		e.token = token
		e.mu.Unlock()
	}
	return metadata.Pairs("authorization", token), nil
}

// handshake exchanges user and password for a token. A server without handshakes gets both with every call.
func (e *Engine) handshake(ctx context.Context) (string, error) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(e.cfg.User+":"+e.cfg.Password))
	var c call
	stream, err := e.client.Handshake(c.in(metadata.NewOutgoingContext(ctx, metadata.Pairs("authorization", basic))))
	if err == nil {
		err = stream.CloseSend()
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if !errors.Is(err, io.EOF) {
		if c.answered.Load() && status.Code(err) == codes.Unimplemented {
			return basic, nil
		}
		return "", e.wrap(fmt.Errorf("logging in: %w", err), &c, nil)
	}
	header, _ := stream.Header() // what it could not read, Recv would have told
	for _, token := range append(header.Get("authorization"), stream.Trailer().Get("authorization")...) {
		if token != "" {
			return token, nil
		}
	}
	return basic, nil
}
