// Package historytest gives tests a real history: the embedded ClickHouse engine, one per test binary, and in it a database of
// its own for each test, with the schema up.
package historytest

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/migrate"
)

var common struct {
	once   sync.Once
	engine *chdb.Engine
	dir    string
	err    error
}

// Main runs the tests of a package that uses this one: os.Exit(historytest.Main(m)) in its TestMain.
func Main(m *testing.M) int {
	chdb.MaybeRunChild()
	code := m.Run()
	if common.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := common.engine.Stop(ctx); err != nil {
			code = max(code, 1)
		}
	}
	if common.dir != "" {
		_ = os.RemoveAll(common.dir)
	}
	return code
}

// Engine returns the engine of this test binary, or skips where the library can't be had.
func Engine(t testing.TB) *chdb.Engine {
	t.Helper()
	lib := chdbtest.Library(t)
	common.once.Do(func() {
		//nolint:usetesting // the engine outlives the test that happens to start it
		if common.dir, common.err = os.MkdirTemp("", "pointsman-history-test-"); common.err != nil {
			return
		}
		common.engine, common.err = chdb.Start(context.Background(), chdb.Config{
			Name: "history", DataDir: common.dir, LibPath: lib, Logger: slog.New(slog.DiscardHandler),
		})
	})
	require.NoError(t, common.err)
	return common.engine
}

// Empty names a database of the test's own that does not exist yet. It is dropped at the end of the test.
func Empty(t testing.TB) history.Config {
	t.Helper()
	cfg := history.Config{Addr: []string{Engine(t).Addr()}, Database: "t_" + strings.ToLower(ulid.Make().String())}
	t.Cleanup(func() {
		db, err := history.Open(history.Config{Addr: cfg.Addr, Database: "default"})
		require.NoError(t, err)
		defer func() { _ = db.Close() }()
		require.NoError(t, db.Conn().Exec(context.Background(), "DROP DATABASE IF EXISTS "+cfg.Database))
	})
	return cfg
}

// Migrated is Empty with the schema up.
func Migrated(t testing.TB) history.Config {
	t.Helper()
	cfg := Empty(t)
	_, err := migrate.Up(t.Context(), cfg)
	require.NoError(t, err)
	return cfg
}

// Open opens a history and closes it at the end of the test.
func Open(t testing.TB, cfg history.Config) *history.DB {
	t.Helper()
	db, err := history.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
