// Package connect has the messages of Spark Connect's protocol, generated from the .proto files of Spark 4.1.0 below proto/, and the few
// of its calls that pointsman makes.
//
// The files are the Apache Software Foundation's, under the Apache License 2.0, which stands at the top of each. The generated code has
// names of its own in the process-wide registries of protobuf (pointsman.spark.connect), so that a program that also links another
// client of Spark Connect does not register a name twice; see generate.sh. What a call means, and what follows from its errors, is
// the adapter's in pkg/engine/spark.
package connect

//go:generate ./generate.sh

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// service is the name on the wire.
const service = "/spark.connect.SparkConnectService/"

// Client makes calls over a connection.
type Client struct{ Conn grpc.ClientConnInterface }

// message is a generated message that can be made from nothing.
type message[T any] interface {
	*T
	proto.Message
}

func unary[T any, M message[T]](ctx context.Context, c Client, method string, request proto.Message) (M, error) {
	answer := M(new(T))
	if err := c.Conn.Invoke(ctx, service+method, request, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// Config reads or sets properties of a session, which it creates.
func (c Client) Config(ctx context.Context, r *ConfigRequest) (*ConfigResponse, error) {
	return unary[ConfigResponse](ctx, c, "Config", r)
}

// Analyze asks about a plan, or for the server's version.
func (c Client) Analyze(ctx context.Context, r *AnalyzePlanRequest) (*AnalyzePlanResponse, error) {
	return unary[AnalyzePlanResponse](ctx, c, "AnalyzePlan", r)
}

// Interrupt stops operations.
func (c Client) Interrupt(ctx context.Context, r *InterruptRequest) (*InterruptResponse, error) {
	return unary[InterruptResponse](ctx, c, "Interrupt", r)
}

// ReleaseExecute lets go of the result of an operation, or of a part of it.
func (c Client) ReleaseExecute(ctx context.Context, r *ReleaseExecuteRequest) (*ReleaseExecuteResponse, error) {
	return unary[ReleaseExecuteResponse](ctx, c, "ReleaseExecute", r)
}

// ReleaseSession ends a session with all that runs in it.
func (c Client) ReleaseSession(ctx context.Context, r *ReleaseSessionRequest) (*ReleaseSessionResponse, error) {
	return unary[ReleaseSessionResponse](ctx, c, "ReleaseSession", r)
}

// ErrorDetails asks for all that the server knows of an error that it has given.
func (c Client) ErrorDetails(ctx context.Context, r *FetchErrorDetailsRequest) (*FetchErrorDetailsResponse, error) {
	return unary[FetchErrorDetailsResponse](ctx, c, "FetchErrorDetails", r)
}

// Responses is the stream of an operation.
type Responses struct{ stream grpc.ClientStream }

// Recv waits for the next response. io.EOF is the end of the stream, which need not be that of the operation.
func (r Responses) Recv() (*ExecutePlanResponse, error) {
	m := new(ExecutePlanResponse)
	if err := r.stream.RecvMsg(m); err != nil {
		return nil, err
	}
	return m, nil
}

var streaming = grpc.StreamDesc{ServerStreams: true}

func (c Client) stream(ctx context.Context, method string, request proto.Message) (Responses, error) {
	stream, err := c.Conn.NewStream(ctx, &streaming, service+method)
	if err != nil {
		return Responses{}, err
	}
	// An error of sending is told by the first Recv, with its reason.
	if err := stream.SendMsg(request); err == nil {
		_ = stream.CloseSend()
	}
	return Responses{stream}, nil
}

// Execute starts an operation. The stream ends with ctx, the operation does not.
func (c Client) Execute(ctx context.Context, r *ExecutePlanRequest) (Responses, error) {
	return c.stream(ctx, "ExecutePlan", r)
}

// Reattach follows an operation that was started before, from behind the response that the request names.
func (c Client) Reattach(ctx context.Context, r *ReattachExecuteRequest) (Responses, error) {
	return c.stream(ctx, "ReattachExecute", r)
}
