package clickhouse_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
)

// TestWhatReadsMayDo: a read that can't write may still do all that reads do, and can't take its own bound away.
func TestWhatReadsMayDo(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "reads"})
	e := open(t, clickhouse.Config{Name: "c", Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = e.Close() })
	const readOnly = "164"
	for _, c := range []struct {
		sql, code string
		settings  map[string]string
	}{
		{"SELECT 1 SETTINGS max_threads = 1", "", map[string]string{"max_block_size": "100"}},
		{"SELECT 1", "", map[string]string{"readonly": "0"}},
		{"SELECT 1", "", map[string]string{"readonly": "1"}},
		{"SELECT count() FROM url('http://127.0.0.1:1/x', 'CSV', 'a UInt8') SETTINGS http_max_tries = 1", "1001", nil}, // nobody listens there
		{"WITH x AS (SELECT 1 AS n) SELECT n FROM x", "", nil},
		{"SHOW TABLES", "", nil},
		{"DESCRIBE TABLE system.one", "", nil},
		{"EXISTS TABLE system.one", "", nil},
		{"EXPLAIN SELECT 1", "", nil},
		{"CREATE TABLE kept (n UInt8) ENGINE = Memory", readOnly, nil},
		{"CREATE TABLE kept (n UInt8) ENGINE = Memory", readOnly, map[string]string{"readonly": "0"}},
		{"SELECT 1 SETTINGS readonly = 0", readOnly, nil},
		{"SELECT 1 SETTINGS max_threads = 1", readOnly, map[string]string{"readonly": "1"}},
		{"INSERT INTO FUNCTION null('n UInt8') SELECT 1", "", nil}, // which the server's mode does not cover
		{"DROP DATABASE default", readOnly, nil},
	} {
		rows, err := e.Submit(t.Context(), engine.Query{ID: "reads", SQL: c.sql, Settings: c.settings, ReadOnly: true})
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			require.NoError(t, rows.Close())
		}
		if c.code == "" {
			require.NoError(t, err, c.sql)
			continue
		}
		var said *engine.Error
		require.ErrorAs(t, err, &said, c.sql)
		require.Equal(t, c.code, said.Code, c.sql)
	}
}
