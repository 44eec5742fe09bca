package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history/migrate"
	"github.com/pointsman/pointsman/pkg/history/row"
	"github.com/pointsman/pointsman/pkg/profile"
)

func bucketed(a event.Attempt, bucket string) event.Attempt {
	a.Bucket = bucket
	return a
}

// profiles reads all that is known of fp, without the time it was read at.
func (f fixture) profiles(at time.Time) map[profile.Key]profile.Profile {
	f.t.Helper()
	got, err := f.r.Profiles(f.t.Context(), []string{"fp"}, at)
	require.NoError(f.t, err)
	for k, p := range got {
		p.AsOf = time.Time{}
		got[k] = p
	}
	return got
}

// Seed 001: one statement, a day or six years of it, 2,000 times apart.
func TestBucketsOfAFingerprintHaveProfilesOfTheirOwn(t *testing.T) {
	f := setup(t)
	for i, hour := range []time.Time{now.Add(-5 * time.Hour), now} {
		f.attempts(10*i,
			bucketed(ended(fmt.Sprint("a", i), 1, "succeeded", "", "fp", hour, 1, 1000, 50), "r17"),
			bucketed(ended(fmt.Sprint("b", i), 1, "failed", "memory_limit", "fp", hour.Add(time.Minute), 0, 0, 9000), "r28"),
			bucketed(ended(fmt.Sprint("c", i), 1, "succeeded", "", "fp", hour.Add(2*time.Minute), 2000, 2_000_000, 8000), "r28"),
			ended(fmt.Sprint("d", i), 1, "succeeded", "", "fp", hour.Add(3*time.Minute), 399, 999, 50),
		)
		o := outcome(i, hour)
		o.Fingerprint, o.Bucket, o.SLAHit = "fp", "r28", i == 0
		o.Target = event.Target{Engine: "interactive", Cluster: "interactive-1"}
		r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(i), hour), o)
		require.NoError(t, err)
		f.insert(batch(row.Outcomes([]row.Outcome{r}), i, i))
	}
	key := func(bucket string) profile.Key {
		return profile.Key{Fingerprint: "fp", Engine: "interactive", Cluster: "interactive-1", Bucket: bucket}
	}
	want := map[profile.Key]profile.Profile{
		key("r17"): {
			Key: key("r17"), Window: "7d", Runs: 2, Successes: 2, SuccessesAfterKill: 2,
			ExecMsMean: new(1.0), ExecMsP50: new(1.0), ExecMsP95: new(1.0), PeakMemoryBytes: new(int64(50)), ReadBytesMean: new(1000.0),
		},
		key("r28"): {
			Key: key("r28"), Window: "7d", Runs: 4, Successes: 2, MemoryKills: 2, SuccessesAfterKill: 1, Tasks: 2, Hits: 1,
			ExecMsMean: new(2000.0), ExecMsP50: new(2000.0), ExecMsP95: new(2000.0), PeakMemoryBytes: new(int64(9000)), ReadBytesMean: new(2e6),
		},
		// The runs of both, and those without a bucket.
		key(""): {
			Key: key(""), Window: "7d", Runs: 8, Successes: 6, MemoryKills: 2, SuccessesAfterKill: 2, Tasks: 2, Hits: 1,
			ExecMsMean: new(800.0), ExecMsP50: new(399.0), ExecMsP95: new(2000.0), PeakMemoryBytes: new(int64(9000)), ReadBytesMean: new(2_001_999.0 / 3),
		},
	}
	require.NoError(t, f.w.Rollup(t.Context(), []time.Time{now.Add(-5 * time.Hour).Truncate(time.Hour), now.Truncate(time.Hour)}))
	require.Empty(t, cmp.Diff(want, f.profiles(now)), "half of it rolled up, half of it from the rows")
	require.Empty(t, cmp.Diff(want, f.profiles(now.Add(24*time.Hour))), "all of it rolled up")
	require.EqualValues(t, 4, f.count("SELECT count() FROM attempt_bucket_1h FINAL"), "no row for the empty bucket: the rollup of all has it")
}

// Somebody who asks for another range each time must not make the answers large.
func TestManyBucketsAreBounded(t *testing.T) {
	f := setup(t)
	var events []event.Attempt
	for i := range 200 {
		events = append(events, bucketed(ended(fmt.Sprint("t", i), 1, "succeeded", "", "fp", now, 1, 1, 1), fmt.Sprintf("l%d", i%100)))
	}
	events = append(events, bucketed(ended("one more", 1, "succeeded", "", "fp", now, 1, 1, 1), "l99"))
	f.attempts(0, events...)
	got := f.profiles(now)
	require.Len(t, got, 64)
	key := profile.Key{Fingerprint: "fp", Engine: "interactive", Cluster: "interactive-1"}
	require.EqualValues(t, 201, got[key].Runs)
	key.Bucket = "l99"
	require.EqualValues(t, 3, got[key].Runs, "the most frequent are kept")
}

// Rows from before there were buckets count for all together.
func TestRowsFromBeforeBuckets(t *testing.T) {
	f := setup(t)
	_, err := migrate.Down(t.Context(), f.cfg, 6)
	require.NoError(t, err)
	require.NoError(t, f.db.Conn().Exec(t.Context(), `INSERT INTO attempts (task_id, attempt, seq, state, ended, ok, engine, cluster, fingerprint, exec_ms, at, k_offset)
		SELECT 'old', 1, 1, 'succeeded', true, true, 'interactive', 'interactive-1', 'fp', 7, $1, 0`, now))
	_, err = migrate.Up(t.Context(), f.cfg)
	require.NoError(t, err)
	f.attempts(1, bucketed(ended("new", 1, "succeeded", "", "fp", now, 9, 1, 1), "n4"))
	got := f.profiles(now)
	require.Len(t, got, 2)
	key := profile.Key{Fingerprint: "fp", Engine: "interactive", Cluster: "interactive-1"}
	require.InDelta(t, 8, *got[key].ExecMsMean, 1e-9)
	key.Bucket = "n4"
	require.InDelta(t, 9, *got[key].ExecMsMean, 1e-9)
}
