package flightsql_test

import (
	"context"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/failure"
)

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
