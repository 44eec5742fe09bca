//go:build real

package flightsql_test

import (
	"context"
	"net"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	sql "github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/example"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/failure"
)

// TestApacheServer speaks to the example server of Apache Arrow, which is not ours: SQLite behind Flight SQL. It can't cancel, gives
// its errors no codes, and puts the statement into its tickets.
func TestApacheServer(t *testing.T) {
	db, err := example.CreateDB()
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	served, err := example.NewSQLiteFlightSQLServer(db)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := grpc.NewServer()
	flight.RegisterFlightServiceServer(g, sql.NewFlightServer(served))
	done := make(chan struct{})
	go func() { _ = g.Serve(l); close(done) }()
	defer func() { g.Stop(); <-done }()

	e := open(t, flightsql.Config{Name: "apache", Addr: l.Addr().String(), Canary: "SELECT count(*) FROM intTable"})
	defer func() { _ = e.Close() }()
	read := func(text string) []any {
		t.Helper()
		rows, err := e.Submit(t.Context(), engine.Query{ID: "apache/1", SQL: text})
		require.NoError(t, err)
		out := numbers(t, rows)
		require.NoError(t, rows.Err())
		require.NoError(t, rows.Close())
		return out
	}
	require.Equal(t, []any{int64(1), int64(2), int64(3), int64(4)}, read("SELECT id FROM intTable ORDER BY id"))
	require.Equal(t, []any{"one", "zero", "negative one", nil}, read("SELECT keyName FROM intTable ORDER BY id"))
	require.Empty(t, read("SELECT id FROM intTable WHERE id < 0"))
	require.Empty(t, read("CREATE TABLE written (n INTEGER)"))
	require.Empty(t, read("INSERT INTO written VALUES (9007199254740993)"))
	require.Equal(t, []any{int64(9007199254740993)}, read("SELECT n FROM written"))

	_, err = e.Submit(t.Context(), engine.Query{ID: "apache/2", SQL: "SELECT * FROM no_such_table"})
	require.ErrorContains(t, err, "no_such_table")
	failed(t, err, engine.Answered, failure.Internal)

	// It makes the numbers until it is told to stop, and can be told so only by its stream.
	ctx, cancel := context.WithCancel(t.Context())
	rows, err := e.Submit(ctx, engine.Query{ID: "apache/3", SQL: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 50000000) SELECT x FROM c"})
	require.NoError(t, err)
	require.True(t, rows.Next())
	cancel()
	for rows.Next() {
	}
	require.ErrorContains(t, rows.Err(), "did not confirm")
	failed(t, rows.Err(), engine.SentUnknown, failure.SubmitUnknown)
	require.NoError(t, rows.Close())

	found, err := e.Find(t.Context(), "apache/3")
	require.NoError(t, err)
	require.Equal(t, engine.RunUnknown, found.State)
	require.NoError(t, e.Canary(t.Context()))
	o, err := e.Observe(t.Context())
	require.NoError(t, err)
	_, known := o.Values["running"].Get()
	require.False(t, known)
}
