package chdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestSmoke(t *testing.T) {
	engine := chdbtest.Start(t, chdb.Config{Name: "smoke"})
	conn := chdbtest.Open(t, engine)
	ctx := t.Context()
	require.NoError(t, conn.Ping(ctx))
	require.NoError(t, conn.Exec(ctx, "CREATE TABLE t (n UInt64, s String) ENGINE = MergeTree ORDER BY n"))
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO t")
	require.NoError(t, err)
	for i := range 1000 {
		require.NoError(t, batch.Append(uint64(i), "x\n\ny"))
	}
	require.NoError(t, batch.Send())
	var n, sum uint64
	require.NoError(t, conn.QueryRow(ctx, "SELECT count(), sum(n) FROM t").Scan(&n, &sum))
	require.Equal(t, uint64(1000), n)
}
