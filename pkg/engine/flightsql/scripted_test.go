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

func TestEndpointsAreReadInTurnAndWhereTheyAre(t *testing.T) {
	other := script(t, &scripted{get: func(ticket string, stream flight.FlightService_DoGetServer) error {
		require.Equal(t, "b", ticket)
		send(stream, "n", 3)
		return nil
	}})
	s := script(t, &scripted{})
	s.info = func(d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
		info, err := tickets("a", "b", "c")(d)
		info.Endpoint[0].Location = []*flight.Location{{Uri: "arrow-flight-reuse-connection://?"}}
		info.Endpoint[1].Location = []*flight.Location{{Uri: "grpc+tls://nobody:1"}, {Uri: "grpc+tcp://" + other.addr}}
		return info, err
	}
	s.get = func(ticket string, stream flight.FlightService_DoGetServer) error {
		if ticket == "a" {
			send(stream, "n", 1, 2)
		} else {
			send(stream, "n")
		}
		return nil
	}
	rows, err := submit(t, s, engine.Query{ID: "e/1"})
	require.NoError(t, err)
	require.Equal(t, []any{int64(1), int64(2), int64(3)}, numbers(t, rows))
	require.NoError(t, rows.Err())
	require.EqualValues(t, 3, *rows.Stats().ResultRows)
	require.EqualValues(t, 2, s.gets.Load())
	require.EqualValues(t, 1, other.gets.Load())
}

func TestLocationsThatCannotBeUsed(t *testing.T) {
	s := script(t, &scripted{})
	s.info = func(d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
		info, err := tickets("a")(d)
		info.Endpoint[0].Location = []*flight.Location{{Uri: "https://storage/part-0.parquet"}}
		return info, err
	}
	_, err := submit(t, s, engine.Query{ID: "l/1"})
	require.ErrorContains(t, err, "https://storage/part-0.parquet")
	failed(t, err, engine.SentUnknown, failure.SubmitUnknown)
}

// The first request may have started the query, and the second one may: neither leaves late, and what half of has left is in doubt.
func TestTheGuardRunsOutBetweenTheRequests(t *testing.T) {
	s := script(t, &scripted{get: func(_ string, stream flight.FlightService_DoGetServer) error { send(stream, "n", 1); return nil }})
	s.info = func(d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
		time.Sleep(300 * time.Millisecond)
		return tickets("a")(d)
	}
	_, err := submit(t, s, engine.Query{ID: "g/1", SubmitBefore: time.Now().Add(200 * time.Millisecond)})
	failed(t, err, engine.SentUnknown, failure.SubmitUnknown)
	require.NotErrorIs(t, err, engine.ErrGuardExpired, "whoever reads that may send it again")
	require.Zero(t, s.gets.Load())
}

// Rows that flow are not cut off by a guard that runs out meanwhile, nor are those of the next endpoint.
func TestTheGuardEndsWhenRowsAreThere(t *testing.T) {
	s := script(t, &scripted{info: tickets("a", "b"), get: func(_ string, stream flight.FlightService_DoGetServer) error { send(stream, "n", 1); return nil }})
	rows, err := submit(t, s, engine.Query{ID: "g/2", SubmitBefore: time.Now().Add(time.Second)})
	require.NoError(t, err)
	time.Sleep(1100 * time.Millisecond)
	require.Len(t, numbers(t, rows), 2)
	require.NoError(t, rows.Err())
}

func TestWhatAServerSaysOfACancel(t *testing.T) {
	for _, c := range []struct {
		name    string
		cancel  func(n int) (flight.CancelStatus, error)
		phase   engine.Phase
		class   failure.Class
		cancels int64
	}{
		{"at once", func(int) (flight.CancelStatus, error) { return flight.CancelStatusCancelled, nil }, engine.Answered, failure.KilledByOperator, 1},
		{"in the end", func(n int) (flight.CancelStatus, error) {
			if n < 3 {
				return flight.CancelStatusCancelling, nil
			}
			return flight.CancelStatusCancelled, nil
		}, engine.Answered, failure.KilledByOperator, 3},
		{"no", func(int) (flight.CancelStatus, error) { return flight.CancelStatusNotCancellable, nil }, engine.SentUnknown, failure.SubmitUnknown, 1},
		{"nothing", func(int) (flight.CancelStatus, error) { return flight.CancelStatusUnspecified, nil }, engine.SentUnknown, failure.SubmitUnknown, 1},
		{"an error", func(int) (flight.CancelStatus, error) { return 0, status.Error(codes.Internal, "no") }, engine.SentUnknown, failure.SubmitUnknown, 1},
		{"that it can't", nil, engine.SentUnknown, failure.SubmitUnknown, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			gone := make(chan struct{})
			s := script(t, &scripted{info: tickets("a"), cancel: c.cancel})
			s.get = func(_ string, stream flight.FlightService_DoGetServer) error {
				defer close(gone)
				send(stream, "n", 1)
				<-stream.Context().Done()
				return nil
			}
			e := open(t, flightsql.Config{Name: "scripted", Addr: s.addr})
			defer func() { _ = e.Close() }()
			ctx, cancel := context.WithCancel(t.Context())
			rows, err := e.Submit(ctx, engine.Query{ID: "c/1", SQL: "SELECT 1"})
			require.NoError(t, err)
			require.True(t, rows.Next())
			found, err := e.Find(t.Context(), "c/1")
			require.NoError(t, err)
			require.Equal(t, engine.RunActive, found.State, "what this client runs itself is known")
			found, err = e.Find(t.Context(), "c/2")
			require.NoError(t, err)
			require.Equal(t, engine.RunUnknown, found.State)
			cancel()
			require.False(t, rows.Next())
			failed(t, rows.Err(), c.phase, c.class)
			require.NoError(t, rows.Close())
			require.Equal(t, c.cancels, s.cancels.Load())
			select {
			case <-gone:
			case <-time.After(10 * time.Second):
				t.Fatal("the stream was not dropped")
			}
		})
	}
}

func TestWhoHasSaidAStatus(t *testing.T) {
	for _, c := range []struct {
		code  codes.Code
		phase engine.Phase
		class failure.Class
	}{
		{codes.Unavailable, engine.SentUnknown, failure.SubmitUnknown}, // a proxy says so too
		{codes.Internal, engine.Answered, failure.Internal},
		{codes.Unknown, engine.Answered, failure.Internal},
		{codes.ResourceExhausted, engine.Answered, failure.Resources},
		{codes.Canceled, engine.Answered, failure.KilledByOperator},
		{codes.DeadlineExceeded, engine.Answered, failure.Timeout},
		{codes.Unauthenticated, engine.Answered, failure.Permission},
		{codes.Unimplemented, engine.Answered, failure.Semantic},
	} {
		t.Run(c.code.String(), func(t *testing.T) {
			refusal := status.Error(c.code, "so it is")
			s := script(t, &scripted{info: func(*flight.FlightDescriptor) (*flight.FlightInfo, error) { return nil, refusal }})
			_, err := submit(t, s, engine.Query{ID: "s/1"})
			require.Equal(t, "so it is", failed(t, err, c.phase, c.class).Error())

			s = script(t, &scripted{info: tickets("a"), get: func(string, flight.FlightService_DoGetServer) error { return refusal }})
			_, err = submit(t, s, engine.Query{ID: "s/2"})
			failed(t, err, c.phase, c.class)

			s = script(t, &scripted{info: tickets("a"), get: func(_ string, stream flight.FlightService_DoGetServer) error {
				send(stream, "n", 1)
				return refusal
			}})
			rows, err := submit(t, s, engine.Query{ID: "s/3"})
			require.NoError(t, err)
			require.Len(t, numbers(t, rows), 1)
			failed(t, rows.Err(), c.phase, c.class)
			require.Nil(t, rows.Stats().ResultRows)
		})
	}
}

func TestAnswersThatCannotBeRead(t *testing.T) {
	for name, get := range map[string]func(string, flight.FlightService_DoGetServer) error{
		"no Arrow": func(_ string, stream flight.FlightService_DoGetServer) error {
			return stream.Send(&flight.FlightData{DataHeader: []byte("<html>"), DataBody: []byte("bad gateway")})
		},
		"an index past its dictionary": func(_ string, stream flight.FlightService_DoGetServer) error {
			typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Int64}
			index := array.NewInt8Builder(memory.DefaultAllocator)
			index.Append(9)
			schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: typ}}, nil)
			values := array.NewInt64Builder(memory.DefaultAllocator)
			values.Append(1)
			w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
			batch := array.NewRecordBatch(schema, []arrow.Array{array.NewDictionaryArray(typ, index.NewArray(), values.NewArray())}, 1)
			return errorsOf(w.Write(batch), w.Close())
		},
		"nothing": func(string, flight.FlightService_DoGetServer) error { return nil },
		"other columns behind the first endpoint": func(ticket string, stream flight.FlightService_DoGetServer) error {
			if ticket == "a" {
				send(stream, "n", 1)
				return nil
			}
			schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.Null}, {Name: "b", Type: arrow.Null}}, nil)
			w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
			batch := array.NewRecordBatch(schema, []arrow.Array{array.NewNull(1), array.NewNull(1)}, 1)
			return errorsOf(w.Write(batch), w.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := script(t, &scripted{info: tickets("a", "b"), get: get})
			rows, err := submit(t, s, engine.Query{ID: "r/1"})
			if err == nil {
				for err == nil && rows.Next() {
					_, err = rows.Values()
				}
				if err == nil {
					err = rows.Err()
				}
				require.NoError(t, rows.Close())
			}
			failed(t, err, engine.SentUnknown, failure.SubmitUnknown)
		})
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A setting that is no header fails by itself: nothing is sent, and no other engine of this kind would take it.
func TestASettingThatIsNoHeader(t *testing.T) {
	s := script(t, &scripted{})
	_, err := submit(t, s, engine.Query{ID: "h/1", Settings: map[string]string{"Bad Name": "1"}})
	failed(t, err, engine.NotSent, failure.Semantic)
}

// Some servers take every statement as a query.
func TestAServerWithoutUpdates(t *testing.T) {
	s := script(t, &scripted{info: tickets("a"), get: func(_ string, stream flight.FlightService_DoGetServer) error { send(stream, "n", 1); return nil }})
	rows, err := submit(t, s, engine.Query{ID: "u/1", SQL: "INSERT INTO t VALUES (1)", SubmitBefore: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	require.Len(t, numbers(t, rows), 1)
	require.NoError(t, rows.Err())
}

// A server that was started anew knows no ticket of before, which is nothing that is wrong with the statement.
func TestATicketThatWasLost(t *testing.T) {
	heard := make(chan struct{})
	s := script(t, &scripted{
		info: func(d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
			close(heard)
			return tickets("a")(d)
		},
		get: func(string, flight.FlightService_DoGetServer) error {
			return status.Error(codes.NotFound, "there is no such statement, or not any more")
		},
	})
	s.addr = cutBehind(t, s.addr, heard)
	_, err := submit(t, s, engine.Query{})
	failed(t, err, engine.SentUnknown, failure.SubmitUnknown)
}

// What has not left yet does not run: a write of which that was said could not go elsewhere any more.
func TestWhatHasNotLeftIsNotRunning(t *testing.T) {
	s := script(t, &scripted{})
	s.addr = silentBehind(t, s.addr, 1)
	e := open(t, flightsql.Config{Name: "scripted", Addr: s.addr, DialTimeout: time.Second})
	t.Cleanup(func() { _ = e.Close() })
	_, err := e.Find(t.Context(), "t/1")
	require.NoError(t, err, "the connection for looking up is made first")
	ended := make(chan error)
	go func() {
		_, err := e.Submit(t.Context(), engine.Query{ID: "t/1", SQL: "INSERT INTO t VALUES (1)"})
		ended <- err
	}()
	for {
		run, err := e.Find(t.Context(), "t/1")
		require.NoError(t, err)
		require.Equal(t, engine.RunUnknown, run.State)
		select {
		case err := <-ended:
			failed(t, err, engine.NotSent, failure.ClusterDown)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
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
