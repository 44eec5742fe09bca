package chdb_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/stretchr/testify/require"
)

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// box lets values of any type be compared by what they hold.
type box struct{ V any }

func deref(p any) any { return reflect.ValueOf(p).Elem().Interface() }

// runs says whether a query with this id runs in the engine.
func runs(t *testing.T, conn driver.Conn, id string) bool {
	t.Helper()
	var n uint64
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query_id = '"+id+"'").Scan(&n))
	return n > 0
}

// memory reads a figure in bytes, such as VmRSS or VmHWM, of a process.
func memory(t testing.TB, pid int, what string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, what+":"); ok {
			var kb int64
			_, err := fmt.Sscan(value, &kb)
			require.NoError(t, err)
			return kb << 10
		}
	}
	t.Fatalf("no %s of process %d", what, pid)
	return 0
}

func itoa(n int) string { return strconv.Itoa(n) }

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
