package flightsql

import (
	"errors"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/wire"
)

var (
	errHalfSent = errors.New("the guard ran out behind the first request of the query and in front of the one for its rows")
	errGarbage  = errors.New("the server's answer can't be read")
)

// names are those of the codes, as the documentation of gRPC has them.
var names = map[codes.Code]string{
	codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS", codes.PermissionDenied: "PERMISSION_DENIED",
	codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED",
	codes.OutOfRange: "OUT_OF_RANGE", codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

func codeOf(c codes.Code) (code, name string) { return strconv.Itoa(int(c)), names[c] }

// wrap gives an error its status and says how far the submission had come. g is nil for control calls.
func (e *Engine) wrap(err error, c *call, g *guard) *engine.Error {
	if done, ok := errors.AsType[*engine.Error](err); ok {
		return done
	}
	out := &engine.Error{Engine: Kind, Phase: engine.SentUnknown, Err: err}
	s, told := status.FromError(err)
	if told && s.Message() != "" {
		out.Err = errors.New(s.Message())
	}
	if told && c.answered.Load() && s.Code() != codes.OK {
		out.Code, out.Name = codeOf(s.Code())
		if s.Code() != codes.Unavailable { // which a proxy says too, whatever the server behind it does
			out.Phase = engine.Answered
		}
		if duplicate(s) {
			out.Code, out.Name, out.Phase = "", "", engine.SentUnknown // not this one, but the other
		}
		return out
	}
	failed := e.secure.Failed()
	if failed != nil && told && s.Code() == codes.Unavailable {
		out.Err = failed
	}
	switch {
	case g == nil:
		if told && s.Code() == codes.Unavailable && (e.refused() || failed != nil) {
			out.Phase = engine.NotSent
		}
	case !g.WasSent():
		out.Phase = engine.NotSent
		if g.WasLate() {
			out.Err = engine.ErrGuardExpired
		}
	case g.WasLate():
		out.Err = errHalfSent // whoever reads ErrGuardExpired may send it again
	}
	return out
}

// duplicate says that the server runs this attempt already.
func duplicate(s *status.Status) bool {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == ErrorDomain && info.GetReason() == ReasonDuplicate {
			return true
		}
	}
	return false
}

// refused says that nobody listened at the address when it was last dialled. A dial that times out says nothing of what runs there.
func (e *Engine) refused() bool {
	err := e.dialled.Load()
	return err != nil && wire.Refused(*err)
}
