package history_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history/row"
)

// K20: the instant that is stored is the one that was sent, and falls into the same hour, whatever the zone of the process and of
// the engine it starts. The whole is run again in processes of their own, because a process has one zone.
func TestInstantsInEveryZone(t *testing.T) {
	const mark = "POINTSMAN_TEST_ZONE"
	if os.Getenv(mark) == "" {
		for _, zone := range []string{"Asia/Shanghai", "Asia/Kolkata", "UTC"} {
			t.Run(zone, func(t *testing.T) {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInstantsInEveryZone$", "-test.v")
				cmd.Env = append(os.Environ(), "TZ="+zone, mark+"="+zone)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.Contains(t, string(out), "PASS: TestInstantsInEveryZone")
			})
		}
		return
	}
	require.Equal(t, os.Getenv(mark), time.Local.String(), "the zone is in force")
	f := setup(t)
	instants := []time.Time{
		now, now.Add(123 * time.Millisecond), now.Truncate(time.Hour).Add(-time.Millisecond), now.Truncate(24 * time.Hour).Add(29 * time.Minute),
	}
	for i, instant := range instants {
		local := instant.In(time.Local)
		o := outcome(i, local)
		r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(i), local), o)
		require.NoError(t, err)
		b := batch(row.Outcomes([]row.Outcome{r}), i, i)
		f.insert(b)
		require.Equal(t, []time.Time{instant.Truncate(time.Hour)}, b.Rows.Hours())
		require.NoError(t, f.w.MarkDirty(t.Context(), b.Rows.Hours()))

		var ms, hour int64
		var back time.Time
		require.NoError(t, f.db.Conn().QueryRow(t.Context(),
			"SELECT toUnixTimestamp64Milli(finished_at), toInt64(toUnixTimestamp(toStartOfHour(finished_at))), finished_at FROM outcomes WHERE task_id = $1", o.TaskID).Scan(&ms, &hour, &back))
		require.Equal(t, instant.UnixMilli(), ms)
		require.Equal(t, instant.Truncate(time.Hour).Unix(), hour)
		require.True(t, back.Equal(instant), back)
	}
	dirty, err := f.w.DirtyHours(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.w.Rollup(t.Context(), dirty))
	require.EqualValues(t, len(instants), f.count("SELECT sum(n) FROM sla_1h FINAL"))
	for _, instant := range instants {
		require.NotZero(t, f.count("SELECT sum(n) FROM sla_1h FINAL WHERE toUnixTimestamp(hour) = $1", instant.Truncate(time.Hour).Unix()))
	}
	got, err := f.r.Profiles(t.Context(), []string{"fp0", "fp1", "fp2"}, now.In(time.Local))
	require.NoError(t, err)
	var tasks int64
	for _, p := range got {
		tasks += p.Tasks
	}
	require.EqualValues(t, len(instants), tasks)
}
