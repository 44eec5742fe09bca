package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/row"
	"github.com/pointsman/pointsman/pkg/profile"
)

func (f fixture) profile(fingerprint, engine string, at time.Time) (profile.Profile, bool) {
	f.t.Helper()
	got, err := f.r.Profiles(f.t.Context(), []string{fingerprint, "another"}, at)
	require.NoError(f.t, err)
	p, ok := got[profile.Key{Fingerprint: fingerprint, Engine: engine, Cluster: engine + "-1"}]
	return p, ok
}

func ended(task string, n int, state, class, fp string, at time.Time, execMs, read, peak int64) event.Attempt {
	a := end(task, n, state, class, "interactive", fp, at)
	a.Stats = &event.Stats{QueueMs: new(int64(5)), ReadBytes: &read, PeakMemoryBytes: &peak}
	if state == "succeeded" {
		a.Stats.ExecMs = &execMs
	}
	return a
}

func TestProfileCountsTheRollupAndTheNewestRows(t *testing.T) {
	f := setup(t)
	old := now.Add(-5 * time.Hour)
	f.attempts(0,
		ended("a", 1, "succeeded", "", "fp", old.Add(-time.Minute), 100, 1000, 50),
		ended("b", 1, "failed", "memory_limit", "fp", old, 0, 0, 900),
		ended("c", 1, "succeeded", "", "fp", old.Add(time.Minute), 300, 3000, 60),
		ended("d", 1, "cancelled", "cancelled_by_user", "fp", old.Add(2*time.Minute), 0, 0, 10),
		ended("e", 1, "succeeded", "", "other", old, 1, 1, 1),
	)
	f.attempts(5, ended("g", 1, "succeeded", "", "fp", now, 200, 2000, 70))

	p, ok := f.profile("fp", "interactive", now)
	require.True(t, ok)
	require.EqualValues(t, 1, p.Runs, "the old hour is not rolled up yet, the newest needs no rollup")

	require.NoError(t, f.w.Rollup(t.Context(), []time.Time{old.Truncate(time.Hour), now.Truncate(time.Hour)}))
	p, ok = f.profile("fp", "interactive", now)
	require.True(t, ok)
	want := profile.Profile{
		Key: profile.Key{Fingerprint: "fp", Engine: "interactive", Cluster: "interactive-1"}, Window: "7d", AsOf: now,
		Runs: 5, Successes: 3, MemoryKills: 1, SuccessesAfterKill: 2,
		ExecMsMean: new(200.0), ExecMsP50: new(200.0), ExecMsP95: new(300.0), PeakMemoryBytes: new(int64(900)), ReadBytesMean: new(2000.0),
	}
	require.Empty(t, cmp.Diff(want, p))

	// The same seen a day later, when all of it is rolled up and nothing is in the tail.
	later, ok := f.profile("fp", "interactive", now.Add(24*time.Hour))
	require.True(t, ok)
	want.AsOf = now.Add(24 * time.Hour)
	require.Empty(t, cmp.Diff(want, later))

	_, ok = f.profile("fp", "batch", now)
	require.False(t, ok, "no history is no profile")
}

func TestAMemoryKillIsSeenAtOnce(t *testing.T) {
	f := setup(t)
	f.attempts(0, ended("a", 1, "succeeded", "", "fp", now, 100, 1, 1))
	f.attempts(1, ended("b", 1, "failed", "memory_limit", "fp", now.Add(time.Second), 0, 0, 1))
	p, ok := f.profile("fp", "interactive", now.Add(2*time.Second))
	require.True(t, ok)
	require.Equal(t, [4]int64{2, 1, 1, 0}, [4]int64{p.Runs, p.Successes, p.MemoryKills, p.SuccessesAfterKill})
	f.attempts(2, ended("c", 1, "succeeded", "", "fp", now.Add(3*time.Second), 100, 1, 1))
	p, _ = f.profile("fp", "interactive", now.Add(4*time.Second))
	require.EqualValues(t, 1, p.SuccessesAfterKill)
}

func TestUnknownIsNotZero(t *testing.T) {
	f := setup(t)
	a := end("a", 1, "succeeded", "", "interactive", "fp", now)
	a.Stats = nil
	f.attempts(0, a)
	p, ok := f.profile("fp", "interactive", now)
	require.True(t, ok)
	require.EqualValues(t, 1, p.Successes)
	require.Nil(t, p.ExecMsMean)
	require.Nil(t, p.ExecMsP50)
	require.Nil(t, p.PeakMemoryBytes)
	require.Nil(t, p.ReadBytesMean)
}

func TestTasksAndHitsAreThoseThatEndedHere(t *testing.T) {
	f := setup(t)
	for i, at := range []time.Time{now.Add(-30 * time.Hour), now} {
		var rows []row.Outcome
		for j := range 4 {
			o := outcome(10*i+j, at)
			o.Fingerprint, o.Target, o.SLAHit = "fp", event.Target{Engine: "interactive", Cluster: "interactive-1"}, j > 0
			o.Tenant = fmt.Sprint("tenant", j%2)
			r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(10*i+j), at), o)
			require.NoError(t, err)
			rows = append(rows, r)
		}
		f.insert(batch(row.Outcomes(rows), 10*i, 10*i+3))
	}
	require.NoError(t, f.w.Rollup(t.Context(), []time.Time{now.Add(-30 * time.Hour).Truncate(time.Hour)}))
	p, ok := f.profile("fp", "interactive", now)
	require.True(t, ok)
	require.Equal(t, [3]int64{8, 6, 0}, [3]int64{p.Tasks, p.Hits, p.Runs})
	outside, ok := f.profile("fp", "interactive", now.Add(20*24*time.Hour))
	require.False(t, ok, "outside the window there is nothing: %v", outside)
}

func TestFingerprintsAreValuesNotSQL(t *testing.T) {
	f := setup(t)
	names := []string{"it's", `back\slash`, `a\'b`, "tab\tnew\nline", "') OR 1=1 --", "ünï", "", `\`, "{fingerprints:String}"}
	for i, fp := range names {
		f.attempts(i, ended(fmt.Sprint("t", i), 1, "succeeded", "", fp, now, 1, 1, 1))
	}
	for _, fp := range names {
		got, err := f.r.Profiles(t.Context(), []string{fp}, now)
		require.NoError(t, err, fp)
		require.Len(t, got, 1, "%q", fp)
		for k := range got {
			require.Equal(t, fp, k.Fingerprint)
		}
	}
	all, err := f.r.Profiles(t.Context(), append(names, names...), now)
	require.NoError(t, err)
	require.Len(t, all, len(names))
}

func TestLookupSaysWhetherItCouldAsk(t *testing.T) {
	db, err := history.Open(history.Config{Addr: []string{"127.0.0.1:1"}})
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	l, err := history.NewReader(db, 0).Lookup(t.Context(), []string{"fp"}, now)
	require.Error(t, err)
	require.False(t, l.Asked)
}

// The interval of the view is the one of the code, to the last digits that a float has.
func TestWilsonInSQLIsTheOneOfProfile(t *testing.T) {
	f := setup(t)
	for i, c := range [][2]int{{15, 15}, {980, 1000}, {0, 7}, {1, 1}, {3, 4}} {
		var rows []row.Outcome
		for j := range c[1] {
			o := outcome(i*1000+j, now)
			o.Fingerprint, o.SLAHit = fmt.Sprintf("w%d", i), j < c[0]
			r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(i*1000+j), now), o)
			require.NoError(t, err)
			rows = append(rows, r)
		}
		f.insert(batch(row.Outcomes(rows), i*1000, i*1000+c[1]-1))
	}
	require.NoError(t, f.w.Rollup(t.Context(), []time.Time{now.Truncate(time.Hour)}))
	rows, err := f.db.Conn().Query(t.Context(), "SELECT n7, hits7, rate7, low7, high7, n30, low30, high30 FROM v_sla_hit_rate")
	require.NoError(t, err)
	defer func() { _ = rows.Close() }()
	seen := 0
	for rows.Next() {
		var n7, hits, n30 uint64
		var rate, low, high, low30, high30 *float64
		require.NoError(t, rows.Scan(&n7, &hits, &rate, &low, &high, &n30, &low30, &high30))
		wantLow, wantHigh := profile.Wilson(int64(hits), int64(n7))
		require.InDelta(t, wantLow, *low, 1e-12)
		require.InDelta(t, wantHigh, *high, 1e-12)
		require.InDelta(t, float64(hits)/float64(n7), *rate, 1e-12)
		require.Equal(t, n7, n30)
		require.Equal(t, [2]float64{*low, *high}, [2]float64{*low30, *high30})
		seen++
	}
	require.Equal(t, 5, seen)
}

// A run that was stopped for its time would have taken at least that long: it counts apart, from the rows and from the rollup.
func TestRunsStoppedForTheirTime(t *testing.T) {
	f := setup(t)
	stopped := func(task, class string, at time.Time, execMs *int64) event.Attempt {
		a := bucketed(ended(task, 1, "failed", class, "fp", at, 0, 10, 10), "r28")
		a.Stats.ExecMs = execMs
		return a
	}
	for i, hour := range []time.Time{now.Add(-5 * time.Hour), now} {
		f.attempts(10*i,
			stopped(fmt.Sprint("a", i), "timeout", hour, new(int64(1000))),
			stopped(fmt.Sprint("b", i), "sla_overrun", hour, new(int64(4000))),
			stopped(fmt.Sprint("c", i), "timeout", hour, nil), // it never ran
			stopped(fmt.Sprint("d", i), "semantic", hour, new(int64(9))),
			bucketed(ended(fmt.Sprint("e", i), 1, "succeeded", "", "fp", hour, 100, 1, 1), "r28"),
		)
	}
	require.NoError(t, f.w.Rollup(t.Context(), []time.Time{now.Add(-5 * time.Hour).Truncate(time.Hour)}))
	for _, bucket := range []string{"", "r28"} {
		p := f.profiles(now)[profile.Key{Fingerprint: "fp", Engine: "interactive", Cluster: "interactive-1", Bucket: bucket}]
		require.EqualValues(t, 10, p.Runs, bucket)
		require.EqualValues(t, 4, p.TimeStops, bucket)
		require.Equal(t, new(2500.0), p.TimeStopMs, bucket)
		require.Equal(t, new(100.0), p.ExecMsMean, bucket)
	}
}
