package parts_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
	"github.com/pointsman/pointsman/services/pointsman/parts"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	os.Exit(m.Run())
}

// wide groups by a key of high cardinality: more state than the interactive pool allows.
const wide = `SELECT count() FROM (SELECT l_orderkey, l_partkey, l_comment, sum(l_quantity) FROM tpch.lineitem GROUP BY ALL)`

func TestPoolsDifferInPhysics(t *testing.T) {
	cfg := parts.Free(t.TempDir())
	cfg.LibPath = chdbtest.Library(t)
	cfg.Scale, cfg.InteractiveMemory = 0.02, 20_000_000
	cfg.BatchStartDelay = 100 * time.Millisecond
	cfg.Log = telemetrytest.Logger(t)
	p, err := parts.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Stop(context.Background())) })

	interactive := open(t, p.Interactive.Addr())
	var n uint64
	require.NoError(t, interactive.QueryRow(t.Context(), "SELECT count() FROM tpch.nation").Scan(&n))
	require.EqualValues(t, 25, n)
	err = interactive.QueryRow(t.Context(), wide).Scan(&n)
	var exception *clickhouse.Exception
	require.ErrorAs(t, err, &exception, "%v", err)
	require.EqualValues(t, 241, exception.Code)

	require.False(t, p.Batch.Alive(), "batch sleeps until somebody asks for it")
	require.NoError(t, p.Batch.Start(t.Context()))
	batch := open(t, p.Batch.Addr())
	require.NoError(t, batch.QueryRow(t.Context(), wide).Scan(&n))
	require.Positive(t, n)
	require.NoError(t, p.Batch.Stop(t.Context()))
}

func open(t *testing.T, addr string) clickhouse.Conn {
	t.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{Addr: []string{addr}, Protocol: clickhouse.HTTP})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
