// Package chdbtest starts real embedded ClickHouse engines for tests.
//
// The TestMain of a package that uses it calls chdb.MaybeRunChild first.
package chdbtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

// Library gives the engine's library, or skips the test where none can be had.
func Library(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	path, err := chdb.Ensure(ctx, nil)
	if err != nil {
		t.Skipf("no embedded ClickHouse library: %v", err)
	}
	return path
}

// Start starts an engine and stops it at the end of the test. Logger and DataDir have defaults.
func Start(t testing.TB, cfg chdb.Config) *chdb.Engine {
	t.Helper()
	cfg.LibPath = Library(t)
	if cfg.DataDir == "" {
		cfg.DataDir = t.TempDir()
	}
	if cfg.Logger == nil {
		cfg.Logger = Logger(t)
	}
	engine, err := chdb.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, engine.Stop(ctx))
	})
	return engine
}

// Open connects to an engine with clickhouse-go and closes the connection at the end of the test.
func Open(t testing.TB, engine *chdb.Engine) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(engine.Options())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Logger writes to the test's log.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
