package spark

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

// The error classes that the adapter looks at itself.
const (
	classCanceled     = "OPERATION_CANCELED"
	stateCanceled     = "HY008"
	classNotFound     = "INVALID_HANDLE.OPERATION_NOT_FOUND"
	classAbandoned    = "INVALID_HANDLE.OPERATION_ABANDONED"
	classExists       = "INVALID_HANDLE.OPERATION_ALREADY_EXISTS"
	classNoSession    = "INVALID_HANDLE.SESSION_NOT_FOUND"
	classClosed       = "INVALID_HANDLE.SESSION_CLOSED"
	classChanged      = "INVALID_HANDLE.SESSION_CHANGED"
	classNotThere     = "INVALID_CURSOR.POSITION_NOT_FOUND"
	classNoMore       = "INVALID_CURSOR.POSITION_NOT_AVAILABLE"
	classNoReattach   = "INVALID_CURSOR.NOT_REATTACHABLE"
	classDisconnected = "INVALID_CURSOR.DISCONNECTED"
	// codeTimeLimit is none of Spark's.
	codeTimeLimit = "pointsman.TIME_LIMIT"

	domain        = "org.apache.spark"
	detailsWithin = 2 * time.Second
)

// wrappers are error classes that say where something failed, and whose cause says what.
var wrappers = map[string]bool{
	"": true, "TASK_WRITE_FAILED": true, "FAILED_READ_FILE.NO_HINT": true, "FAILED_EXECUTE_UDF": true, "STAGE_MATERIALIZATION_MULTIPLE_FAILURES": true,
}

// fault is an error that the server itself has reported.
type fault struct {
	class   string // error class with its sub-class; the name of the Java class when it has none
	state   string // SQLSTATE
	message string
	id      string // under which the server has its details
}

// faultOf reads what a call failed of. It says no when the server has not said anything: the connection broke, or something between.
func faultOf(err error) (fault, bool) {
	s, ok := status.FromError(err)
	if !ok {
		return fault{}, false
	}
	for _, d := range s.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != domain {
			continue
		}
		m := info.GetMetadata()
		f := fault{class: m["errorClass"], state: m["sqlState"], message: s.Message(), id: m["errorId"]}
		if f.class == "" {
			f.class = info.GetReason()
		}
		return f, true
	}
	return fault{}, false
}

func (f fault) is(class string) bool { return f.class == class }

// gone says that the server keeps nothing of an operation: it never came, or it is over and was let go.
func (f fault) gone() bool {
	switch f.class {
	case classNotFound, classAbandoned, classNoSession, classClosed, classChanged:
		return true
	}
	return false
}

func (f fault) error(phase engine.Phase) *engine.Error {
	state := f.state
	return &engine.Error{Engine: Kind, Code: f.class, Name: state, Type: state[:min(2, len(state))], Phase: phase, Err: errors.New(f.message)}
}

// used is the error of an attempt whose name has been used before: another run of it may be there, and this one was not started. It
// has no code, since it is how the look-up that has to follow ends that counts.
func (f fault) used() *engine.Error {
	return &engine.Error{Engine: Kind, Name: f.class, Phase: engine.SentUnknown, Err: fmt.Errorf("the attempt was submitted before: %s", f.message)}
}

// detailed asks the server for all that it knows of an error: what comes with the error itself is cut short.
func (e *Engine) detailed(ctx context.Context, session string, f fault) fault {
	if f.id == "" {
		return f
	}
	ctx, cancel := e.asked(ctx, detailsWithin)
	defer cancel()
	answer, err := e.client().ErrorDetails(ctx, &connect.FetchErrorDetailsRequest{
		SessionId: session, UserContext: e.user(), ErrorId: f.id, ClientType: new(clientType),
	})
	if err != nil || answer.RootErrorIdx == nil {
		return f
	}
	all := answer.GetErrors()
	at, best := int(answer.GetRootErrorIdx()), f
	for range all { // causes, each at most once
		if at < 0 || at >= len(all) {
			break
		}
		one := all[at]
		class := one.GetSparkThrowable().GetErrorClass()
		if class == "" && len(one.GetErrorTypeHierarchy()) > 0 {
			class = one.GetErrorTypeHierarchy()[0]
		}
		if at == int(answer.GetRootErrorIdx()) || !wrappers[one.GetSparkThrowable().GetErrorClass()] {
			best = fault{class: class, state: one.GetSparkThrowable().GetSqlState(), message: one.GetMessage(), id: f.id}
		}
		if !wrappers[one.GetSparkThrowable().GetErrorClass()] || one.CauseIdx == nil {
			break
		}
		at = int(one.GetCauseIdx())
	}
	if best.class == "" {
		best.class = f.class
	}
	if strings.TrimSpace(best.message) == "" {
		best.message = f.message
	}
	return best
}

// wrap gives the error of a call that is not the statement's own.
func (e *Engine) wrap(err error) *engine.Error {
	if own, ok := errors.AsType[*engine.Error](err); ok {
		return own
	}
	if f, ok := faultOf(err); ok {
		return f.error(engine.Answered)
	}
	return &engine.Error{Engine: Kind, Code: codeOf(err), Phase: e.reached(err), Err: e.said(err)}
}

// said is the error as people should read it.
func (e *Engine) said(err error) error {
	if e.life.Err() != nil {
		return errClosed
	}
	s, ok := status.FromError(err)
	if failed := e.secure.Failed(); failed != nil && ok && s.Code() == codes.Unavailable {
		return failed
	}
	if ok {
		return fmt.Errorf("%s: %s", s.Code(), s.Message())
	}
	return err
}

// codeOf gives a code to what something else than Spark has answered: a proxy, or a server that is none of Spark's.
func codeOf(err error) string {
	switch c := status.Code(err); c {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.ResourceExhausted:
		return "grpc." + c.String()
	default:
		return ""
	}
}

// reached says how far a call has come: a server that can't be dialled, or does not agree on TLS, has got nothing.
func (e *Engine) reached(err error) engine.Phase {
	s, ok := status.FromError(err)
	switch {
	case ok && codeOf(err) != "":
		return engine.Answered
	case ok && s.Code() == codes.Unavailable && (notDialled(s.Message()) || e.secure.Failed() != nil):
		return engine.NotSent
	default:
		return engine.SentUnknown
	}
}

// notDialled tells a connection that was never made from one that broke. The library has one code for both.
func notDialled(message string) bool {
	return strings.Contains(message, "connection error: desc = \"transport: Error while dialing")
}

// timeLimit is the end of a statement that ran for too long. Spark has no limit for one statement; this one is kept here.
func timeLimit(after time.Duration) *engine.Error {
	return &engine.Error{
		Engine: Kind, Code: codeTimeLimit, Name: "TIME_LIMIT", Phase: engine.Answered,
		Err: fmt.Errorf("the statement ran for longer than its limit of %s and was stopped", after),
	}
}
