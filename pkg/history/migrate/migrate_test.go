package migrate_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/migrations"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/historytest"
	"github.com/pointsman/pointsman/pkg/history/migrate"
)

func TestMain(m *testing.M) { os.Exit(historytest.Main(m)) }

func tables(t *testing.T, cfg history.Config) []string {
	t.Helper()
	db := historytest.Open(t, cfg)
	var names []string
	require.NoError(t, db.Conn().QueryRow(t.Context(),
		"SELECT arraySort(groupArray(name)) FROM system.tables WHERE database = currentDatabase() AND NOT startsWith(name, '.inner')").Scan(&names))
	return names
}

func TestUpDownUp(t *testing.T) {
	cfg := historytest.Empty(t)
	pending, err := migrate.Pending(t.Context(), cfg)
	require.NoError(t, err)
	require.True(t, pending)

	first, err := migrate.Up(t.Context(), cfg)
	require.NoError(t, err)
	files, err := fs.Glob(migrations.ClickHouse, "clickhouse/*.sql")
	require.NoError(t, err)
	require.Len(t, first, len(files))
	full := tables(t, cfg)
	require.Subset(t, full, []string{
		"requests", "decisions", "attempts", "attempt_ends", "outcomes", "queue_samples", "sla_1h", "attempt_1h", "qwait_1h", "sla_bucket_1h", "attempt_bucket_1h",
		"rollup_rev", "dirty_hours", "live_1m", "v_tasks", "v_attempts", "v_sla_hit_rate", "v_queue_wait", "v_misroutes",
		"v_rejections", "v_rescued", "v_routed_by_history", "v_pipeline_health",
	})

	again, err := migrate.Up(t.Context(), cfg)
	require.NoError(t, err)
	require.Empty(t, again, "a second start has nothing to do")
	status, err := migrate.Status(t.Context(), cfg)
	require.NoError(t, err)
	require.Len(t, status, len(files))
	for _, m := range status {
		require.True(t, m.Applied, m.File)
		require.False(t, m.At.IsZero())
	}

	down, err := migrate.Down(t.Context(), cfg, 0)
	require.NoError(t, err)
	require.Len(t, down, len(files))
	require.Equal(t, []string{migrate.VersionTable}, tables(t, cfg), "what was made is taken back")

	_, err = migrate.Up(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, full, tables(t, cfg))
}

func TestAnInterruptedMigrationCanBeRepeated(t *testing.T) {
	cfg := historytest.Migrated(t)
	full := tables(t, cfg)
	db := historytest.Open(t, cfg)
	// As if the process had died after the last file's statements and before its version was noted.
	require.NoError(t, db.Conn().Exec(t.Context(), "ALTER TABLE "+migrate.VersionTable+" DELETE WHERE version_id > 1 SETTINGS mutations_sync = 2"))
	again, err := migrate.Up(t.Context(), cfg)
	require.NoError(t, err)
	require.NotEmpty(t, again)
	require.Equal(t, full, tables(t, cfg))
}

func TestNamesThatAreNoNames(t *testing.T) {
	for _, cfg := range []history.Config{{Database: "a; DROP DATABASE x"}, {Cluster: "it's"}} {
		_, err := migrate.Up(t.Context(), cfg)
		require.ErrorContains(t, err, "can't be the name")
	}
}

func TestEveryDropHasItsCreate(t *testing.T) {
	files, err := fs.Glob(migrations.ClickHouse, "clickhouse/*.sql")
	require.NoError(t, err)
	for _, name := range files {
		data, err := fs.ReadFile(migrations.ClickHouse, name)
		require.NoError(t, err)
		up, down, ok := strings.Cut(string(data), "-- +goose Down")
		require.True(t, ok, name)
		require.Equal(t, strings.Count(up, "CREATE ")+strings.Count(up, "ADD COLUMN "), strings.Count(down, "DROP "), name)
		require.Equal(t, strings.Count(up, "CREATE ")+strings.Count(up, "ALTER "), strings.Count(up, "{{ON_CLUSTER}}"), "%s: every object is made on the whole cluster", name)
		require.Equal(t, strings.Count(down, "DROP TABLE")+strings.Count(down, "DROP VIEW")+strings.Count(down, "ALTER "), strings.Count(down, "{{ON_CLUSTER}}"), name)
		require.NotContains(t, strings.ReplaceAll(up, "{{ENGINE_PREFIX}}", ""), "ENGINE = MergeTree", name)
	}
}
