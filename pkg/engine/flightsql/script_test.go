package flightsql_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/failure"
)

// scripted is a server that says what a test wants it to.
type scripted struct {
	flight.BaseFlightServer
	addr   string
	info   func(d *flight.FlightDescriptor) (*flight.FlightInfo, error)
	get    func(ticket string, stream flight.FlightService_DoGetServer) error
	cancel func(n int) (flight.CancelStatus, error)

	gets, cancels atomic.Int64
}

func (s *scripted) GetFlightInfo(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(d)
}

func (s *scripted) DoGet(t *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	s.gets.Add(1)
	return s.get(string(t.GetTicket()), stream)
}

func (s *scripted) DoAction(a *flight.Action, stream flight.FlightService_DoActionServer) error {
	if a.GetType() != flight.CancelFlightInfoActionType || s.cancel == nil {
		return status.Error(codes.Unimplemented, "no such action")
	}
	said, err := s.cancel(int(s.cancels.Add(1)))
	if err != nil {
		return err
	}
	body, err := proto.Marshal(&flight.CancelFlightInfoResult{Status: said})
	if err != nil {
		return err
	}
	return stream.Send(&flight.Result{Body: body})
}

func script(t *testing.T, s *scripted) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.addr = l.Addr().String()
	g := grpc.NewServer()
	flight.RegisterFlightServiceServer(g, s)
	done := make(chan struct{})
	go func() { _ = g.Serve(l); close(done) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return s
}

// tickets is an answer with an endpoint per ticket.
func tickets(names ...string) func(*flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return func(*flight.FlightDescriptor) (*flight.FlightInfo, error) {
		info := &flight.FlightInfo{}
		for _, n := range names {
			info.Endpoint = append(info.Endpoint, &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: []byte(n)}})
		}
		return info, nil
	}
}

// send writes rows of one number; after is what the stream ends with.
func send(stream flight.FlightService_DoGetServer, column string, numbers ...int64) {
	schema := arrow.NewSchema([]arrow.Field{{Name: column, Type: arrow.PrimitiveTypes.Int64}}, nil)
	w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
	defer func() { _ = w.Close() }()
	for _, n := range numbers {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.Int64Builder).Append(n)
		batch := b.NewRecordBatch()
		_ = w.Write(batch) // a client that has gone is what some tests are about
		batch.Release()
		b.Release()
	}
}

func submit(t *testing.T, s *scripted, q engine.Query) (engine.Rows, error) {
	t.Helper()
	e := open(t, flightsql.Config{Name: "scripted", Addr: s.addr, DialTimeout: time.Second})
	t.Cleanup(func() { _ = e.Close() })
	if q.SQL == "" {
		q.SQL = "SELECT n FROM t"
	}
	return e.Submit(t.Context(), q)
}

func numbers(t *testing.T, rows engine.Rows) (out []any) {
	t.Helper()
	for rows.Next() {
		v, err := rows.Values()
		require.NoError(t, err)
		out = append(out, v[0])
	}
	return out
}

// failed checks an error of the adapter, and gives it.
func failed(t *testing.T, err error, phase engine.Phase, class failure.Class) *engine.Error {
	t.Helper()
	var e *engine.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, phase, e.Phase, "%v", err)
	got := failure.Classify(failure.Report{Engine: e.Engine, Code: e.Code, Name: e.Name, Message: e.Error(), Reach: failure.Reach(e.Phase)})
	require.Equal(t, string(class), got.Class, "%v (code %q)", err, e.Code)
	return e
}

// silentBehind is a way to a server that carries the first connections; on later ones nothing ever comes.
func silentBehind(t *testing.T, server string, carried int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var group sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	group.Go(func() {
		for n := 0; ; n++ {
			client, err := l.Accept()
			if err != nil {
				return
			}
			if n >= carried {
				group.Go(func() { _, _ = io.Copy(io.Discard, client); _ = client.Close() })
				continue
			}
			behind, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			group.Go(func() { _, _ = io.Copy(behind, client); _ = behind.Close() })
			group.Go(func() { _, _ = io.Copy(client, behind); _ = client.Close() })
		}
	})
	return l.Addr().String()
}

// cutBehind is a way to a server that carries what the first connection is answered once heard is closed, and then breaks.
func cutBehind(t *testing.T, server string, heard <-chan struct{}) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var group sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); group.Wait() })
	carry := func(client net.Conn, first bool) {
		behind, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()
			return
		}
		group.Go(func() {
			_, _ = io.Copy(behind, client)
			_ = behind.Close()
		})
		group.Go(func() {
			defer client.Close()
			if !first {
				_, _ = io.Copy(client, behind)
				return
			}
			var held []byte
			for buf := make([]byte, 1<<10); ; {
				_ = behind.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				n, err := behind.Read(buf)
				held = append(held, buf[:n]...)
				select {
				case <-heard:
					if n == 0 && len(held) > 0 {
						_, _ = client.Write(held)
						return
					}
				default:
					_, _ = client.Write(held)
					held = nil
				}
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
					return
				}
			}
		})
	}
	group.Go(func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			carry(c, first)
		}
	})
	return l.Addr().String()
}
