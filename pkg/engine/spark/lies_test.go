package spark

import (
	"context"
	"net"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

// TestColumnsOfNothing: what a schema announces is not believed without bound.
func TestColumnsOfNothing(t *testing.T) {
	fields := make([]*connect.DataType_StructField, engine.MostColumns+1)
	for i := range fields {
		fields[i] = &connect.DataType_StructField{}
	}
	r := &rows{}
	err := r.take(&connect.ExecutePlanResponse{Schema: &connect.DataType{Kind: &connect.DataType_Struct_{Struct: &connect.DataType_Struct{Fields: fields}}}})
	require.ErrorIs(t, err, engine.ErrColumns)
	require.Empty(t, r.Columns())
}

// TestAServerThatSaysItHasInterrupted: what counts is the end of the operation's responses, and that is waited for within a bound.
func TestAServerThatSaysItHasInterrupted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	operation := "runs on"
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		switch path.Base(method) {
		case "ReleaseExecute":
			if err := stream.RecvMsg(&connect.ReleaseExecuteRequest{}); err != nil {
				return err
			}
			return stream.SendMsg(&connect.ReleaseExecuteResponse{OperationId: &operation})
		case "Interrupt":
			if err := stream.RecvMsg(&connect.InterruptRequest{}); err != nil {
				return err
			}
			return stream.SendMsg(&connect.InterruptResponse{InterruptedIds: []string{operation}})
		case "ReattachExecute":
			<-stream.Context().Done()
			return stream.Context().Err()
		default:
			return status.Error(codes.Unimplemented, method)
		}
	}))
	done := make(chan struct{})
	go func() { _ = server.Serve(l); close(done) }()
	t.Cleanup(func() { server.Stop(); <-done })
	e, err := Open(Config{Name: "lies", Addr: l.Addr().String()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })

	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	began := time.Now()
	found, err := e.Kill(ctx, "t/1")
	require.True(t, found)
	var said *engine.Error
	require.ErrorAs(t, err, &said)
	require.Equal(t, engine.SentUnknown, said.Phase)
	require.Less(t, time.Since(began), 5*time.Second)
	run, err := e.Find(t.Context(), "t/1")
	require.NoError(t, err)
	require.Equal(t, engine.RunActive, run.State)
}
