package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDirtyHours(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	hour, before := now.Truncate(time.Hour), now.Truncate(time.Hour).Add(-time.Hour)
	dirty := func() []time.Time {
		hours, err := f.w.DirtyHours(ctx)
		require.NoError(t, err)
		return hours
	}
	require.Empty(t, dirty())
	require.NoError(t, f.w.MarkDirty(ctx, []time.Time{hour, before, hour}))
	require.Equal(t, []time.Time{before, hour}, dirty())
	require.NoError(t, f.w.Rollup(ctx, []time.Time{before}))
	require.Equal(t, []time.Time{hour}, dirty())
	require.NoError(t, f.w.Rollup(ctx, dirty()))
	require.Empty(t, dirty())
	require.NoError(t, f.w.MarkDirty(ctx, []time.Time{hour}))
	require.Equal(t, []time.Time{hour}, dirty(), "a later mark makes it dirty again")
}

// A bucket that becomes empty keeps its row in the rollup; its old revision is what takes it out of every sum.
func TestABucketThatBecomesEmptyIsNotRead(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	f.insert(batch(outcomes(t, 0, 30, now), 0, 29))
	hours := []time.Time{now.Truncate(time.Hour)}
	require.NoError(t, f.w.Rollup(ctx, hours))
	require.NoError(t, f.db.Conn().Exec(ctx, "ALTER TABLE outcomes DELETE WHERE fingerprint = 'fp1' SETTINGS mutations_sync = 2"))
	require.NoError(t, f.w.Rollup(ctx, hours))
	require.EqualValues(t, 30, f.count("SELECT sum(n) FROM sla_1h FINAL"), "the row of the empty bucket is still there")
	require.EqualValues(t, 20, f.count("SELECT sum(n30) FROM v_sla_hit_rate"))
}

// Between the first statement of a recompute and its last the hour does not vanish from what is read.
func TestAnUnfinishedRecomputeHidesNothing(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	f.insert(batch(outcomes(t, 0, 30, now), 0, 29))
	hours := []time.Time{now.Truncate(time.Hour)}
	require.NoError(t, f.w.Rollup(ctx, hours))
	require.NoError(t, f.db.Conn().Exec(ctx, "RENAME TABLE qwait_1h TO qwait_gone"))
	require.ErrorContains(t, f.w.Rollup(ctx, hours), "rollup_qwait_1h")
	require.EqualValues(t, 30, f.count("SELECT sum(n30) FROM v_sla_hit_rate"))
	require.EqualValues(t, 1, f.count("SELECT count() FROM rollup_rev FINAL"))
}
