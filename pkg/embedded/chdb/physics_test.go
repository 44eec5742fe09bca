package chdb_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/embedded/supervise"
)

// wide is an aggregation that needs some hundred MB of memory.
const wide = "SELECT count() FROM (SELECT number, toString(number) AS s FROM numbers(3000000) GROUP BY number, s)"

// TestTwoPools: the same query is killed by the memory limit of one pool and spills in the other.
func TestTwoPools(t *testing.T) {
	interactive := chdbtest.Start(t, chdb.Config{
		Name:     "interactive",
		Caps:     map[string]string{"max_memory_usage": "100000000"},
		Settings: map[string]string{"max_threads": "2", "max_bytes_before_external_group_by": "0", "max_bytes_ratio_before_external_group_by": "0"},
	})
	var changes []supervise.State
	started := time.Now()
	batch := chdbtest.Start(t, chdb.Config{
		Name:       "batch",
		Caps:       map[string]string{"max_memory_usage": "100000000"},
		Settings:   map[string]string{"max_threads": "1", "max_bytes_before_external_group_by": "20000000", "max_bytes_before_external_sort": "20000000"},
		StartDelay: 700 * time.Millisecond,
		OnChange:   func(c supervise.Change) { changes = append(changes, c.State) },
	})
	require.GreaterOrEqual(t, time.Since(started), 700*time.Millisecond)
	require.Equal(t, []supervise.State{supervise.Starting, supervise.Ready}, changes)
	require.NotEqual(t, interactive.Pid(), batch.Pid())

	a := post(t, interactive, wide)
	require.Equal(t, "241", code(a), a.body)
	require.Equal(t, "3000000\n", ok(t, post(t, batch, wide)))

	for _, c := range []struct {
		name, sql string
		params    []string
	}{
		{"in the URL", wide, []string{"max_memory_usage", "10000000000"}},
		{"to no limit", wide, []string{"max_memory_usage", "0"}},
		{"in the statement", wide + " SETTINGS max_memory_usage = 10000000000", nil},
		{"by SET", "SET max_memory_usage = 10000000000", nil},
		{"by SET to no limit", "SET max_memory_usage = 0", nil},
		{"by SET in a session", "SET max_memory_usage = 0", []string{"session_id", "cap"}},
	} {
		require.Equal(t, "452", code(post(t, interactive, c.sql, c.params...)), "raising the cap %s", c.name)
	}
	require.Equal(t, "50000000\n", ok(t, post(t, interactive, "SELECT getSetting('max_memory_usage')", "max_memory_usage", "50000000")), "lowering it is fine")
	require.Equal(t, "241", code(post(t, interactive, wide, "max_memory_usage", "50000000")))
}

func TestMaxConcurrent(t *testing.T) {
	engine := chdbtest.Start(t, chdb.Config{Name: "narrow", MaxConcurrent: 2})
	one, two := later(t, engine, forever, "query_id", "one"), later(t, engine, forever, "query_id", "two")
	conn := chdbtest.Open(t, engine)
	require.Eventually(t, func() bool { return runs(t, conn, "one") && runs(t, conn, "two") }, patience, tick)
	a := post(t, engine, "SELECT count() FROM numbers(10)")
	require.Equal(t, "202", code(a), a.body)
	require.Equal(t, http.StatusInternalServerError, a.status)
	require.NoError(t, chdbtest.Open(t, engine).Ping(t.Context()), "a new client can still say hello")
	ok(t, post(t, engine, "KILL QUERY WHERE query_id = 'one'"))
	require.Equal(t, "394", code(<-one))
	require.Eventually(t, func() bool { return post(t, engine, "SELECT count() FROM numbers(10)").status == 200 }, patience, tick)
	ok(t, post(t, engine, "KILL QUERY WHERE query_id = 'two'"))
	<-two
}

func TestConfigurationErrors(t *testing.T) {
	lib := chdbtest.Library(t)
	for want, cfg := range map[string]chdb.Config{
		"no Logger":             {DataDir: t.TempDir()},
		"no DataDir":            {Logger: discard()},
		"positive integer":      {Logger: discard(), DataDir: t.TempDir(), Caps: map[string]string{"max_memory_usage": "0"}},
		"not the name":          {Logger: discard(), DataDir: t.TempDir(), Settings: map[string]string{"<x>": "0"}},
		"missing port":          {Logger: discard(), DataDir: t.TempDir(), Addr: "localhost"},
		"no such file":          {Logger: discard(), DataDir: t.TempDir(), LibPath: "/nonexistent.so"},
		"refused":               {Logger: discard(), DataDir: t.TempDir(), LibPath: lib, Settings: map[string]string{"max_threads": "many"}},
		"the address is in use": {Logger: discard(), DataDir: t.TempDir(), LibPath: lib, Addr: shared(t).Addr()},
	} {
		_, err := chdb.Start(t.Context(), cfg)
		require.Error(t, err, want)
		require.Contains(t, strings.ToLower(err.Error()), strings.ToLower(want))
	}
}
