package flightsql_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/failure"
)

// forgetful takes updates, never answers them, and knows of none.
type forgetful struct{ flight.BaseFlightServer }

// DoPut waits for whoever has sent it to go.
func (*forgetful) DoPut(stream flight.FlightService_DoPutServer) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// ListActions says that it can be asked to kill.
func (*forgetful) ListActions(_ *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	return stream.Send(&flight.ActionType{Type: flightsql.ActionKill})
}

// DoAction finds nothing to kill.
func (*forgetful) DoAction(_ *flight.Action, stream flight.FlightService_DoActionServer) error {
	return stream.Send(&flight.Result{Body: []byte(`{"found":false}`)})
}

// A server that has nothing to kill has not said that it stopped anything: the write may have been done.
func TestAWriteThatIsNotThereToBeStopped(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	flight.RegisterFlightServiceServer(server, &forgetful{})
	done := make(chan struct{})
	go func() { _ = server.Serve(l); close(done) }()
	t.Cleanup(func() { server.Stop(); <-done })
	e := open(t, flightsql.Config{Name: "forgetful", Addr: l.Addr().String(), DialTimeout: time.Second})
	t.Cleanup(func() { _ = e.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = e.Submit(ctx, engine.Query{ID: "t/1", SQL: "INSERT INTO t VALUES (1)"})
	failed(t, err, engine.SentUnknown, failure.SubmitUnknown)
}
