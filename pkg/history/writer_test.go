package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/row"
)

func TestInsertIsStoredOncePerToken(t *testing.T) {
	f := setup(t)
	b := batch(outcomes(t, 0, 500, now), 0, 499)
	f.insert(b)
	f.insert(b)
	require.EqualValues(t, 500, f.count("SELECT count() FROM outcomes"), "raw: the server dropped the repeat")
	require.EqualValues(t, 500, f.count("SELECT toUInt64(sum(n)) FROM live_1m"), "K17: and did not count it again in the view")
}

// K17: a server that counts a repeat again in its views, as those before 26.2 do by default, changes no number.
func TestRepeatIsCountedOnceWhateverTheServersDefault(t *testing.T) {
	const setting = "deduplicate_blocks_in_dependent_materialized_views"
	have := history.Pinned[setting]
	defer func() { history.Pinned[setting] = have }()
	for _, value := range []int{0, 1} {
		history.Pinned[setting] = value
		f := setup(t)
		b := batch(outcomes(t, 0, 200, now), 0, 199)
		f.insert(b)
		f.insert(b)
		f.attempts(0, end("t1", 1, "succeeded", "", "interactive", "fp", now))
		f.attempts(0, end("t1", 1, "succeeded", "", "interactive", "fp", now))
		require.NoError(t, f.w.Rollup(t.Context(), b.Rows.Hours()))
		require.EqualValues(t, 200, f.count("SELECT count() FROM outcomes"))
		require.EqualValues(t, 200, f.count("SELECT sum(n) FROM sla_1h FINAL"))
		require.EqualValues(t, 1, f.count("SELECT sum(runs) FROM attempt_1h FINAL"))
	}
}

func TestOverlapWithOtherCutsCountsOnce(t *testing.T) {
	f := setup(t)
	f.insert(batch(outcomes(t, 0, 1000, now), 0, 999))
	f.insert(batch(outcomes(t, 500, 1000, now), 500, 1499))
	require.EqualValues(t, 1500, f.count("SELECT count() FROM outcomes FINAL"))
	require.NoError(t, f.w.Rollup(t.Context(), outcomes(t, 0, 1500, now).Hours()))
	require.EqualValues(t, 1500, f.count("SELECT sum(n) FROM sla_1h FINAL"))
}

func TestFirstRecordWins(t *testing.T) {
	f := setup(t)
	at := now
	first, second := end("t1", 1, "succeeded", "", "interactive", "fp", at), end("t1", 1, "failed", "internal", "interactive", "fp", at.Add(time.Second))
	for _, order := range [][2]int64{{7, 9}, {9, 7}} { // whatever comes in first, the lower offset counts
		for i, offset := range order {
			e := first
			if offset == 9 {
				e = second
			}
			r, err := row.FromAttempt(rec(event.TopicAttempts, offset, at), e)
			require.NoError(t, err)
			f.insert(history.Batch{Rows: row.Attempts([]row.Attempt{r}), Ranges: []history.Range{{TopicID: "x", First: offset + int64(i)*100, Last: offset + int64(i)*100}}})
		}
		var state string
		require.NoError(t, f.db.Conn().QueryRow(t.Context(), "SELECT state FROM attempts FINAL WHERE task_id = 't1'").Scan(&state))
		require.Equal(t, "succeeded", state)
	}
}

// K19: a block over 101 weeks is split, not tried for ever.
func TestABatchOverManyPartitionsIsSplit(t *testing.T) {
	f := setup(t)
	const weeks = 101
	require.NoError(t, f.db.Conn().Exec(t.Context(), "ALTER TABLE decisions REMOVE TTL"))
	var rows []row.Decision
	for i := range weeks {
		at := now.Add(-time.Duration(i) * 7 * 24 * time.Hour)
		r, err := row.FromDecision(rec(event.TopicDecisions, int64(i), at), event.RouteDecision{
			DecisionID: "d", TaskID: "t" + at.Format(time.DateOnly), Attempt: 1, Kind: event.Route, DecidedAt: at,
		})
		require.NoError(t, err)
		rows = append(rows, r)
	}
	b := batch(row.Decisions(rows), 0, weeks-1)
	f.insert(b)
	f.insert(b)
	require.EqualValues(t, weeks, f.count("SELECT count() FROM decisions"))
	require.EqualValues(t, weeks, f.count("SELECT uniqExact(toMonday(decided_at)) FROM decisions"))
}

// K19 and K16: "too many parts" is the other meaning of code 252, and passes.
func TestTooManyPartsIsTransientAndTheRetryStoresOnce(t *testing.T) {
	f := setup(t)
	ctx := t.Context()
	require.NoError(t, f.db.Conn().Exec(ctx, "SYSTEM STOP MERGES outcomes"))
	require.NoError(t, f.db.Conn().Exec(ctx, "ALTER TABLE outcomes MODIFY SETTING parts_to_throw_insert = 3, parts_to_delay_insert = 3, max_delay_to_insert = 1"))
	for i := range 3 {
		f.insert(batch(outcomes(t, i*10, 10, now), i*10, i*10+9))
	}
	b := batch(outcomes(t, 30, 10, now), 30, 39)
	for range 2 {
		_, err := f.w.Insert(ctx, b)
		require.Error(t, err)
		kind, code := history.Classify(err)
		require.Equal(t, history.FaultTransient, kind)
		require.EqualValues(t, 252, code)
	}
	require.NoError(t, f.db.Conn().Exec(ctx, "ALTER TABLE outcomes MODIFY SETTING parts_to_throw_insert = 3000"))
	require.NoError(t, f.db.Conn().Exec(ctx, "SYSTEM START MERGES outcomes"))
	f.insert(b)
	f.insert(b)
	require.EqualValues(t, 40, f.count("SELECT count() FROM outcomes"))
}

// K24, for what slips through the checks: the server's refusal of one row costs that row only.
func TestARowTheServerRefusesStandsAlone(t *testing.T) {
	for name, bad := range map[string]int{"first": 0, "middle": 511, "last": 999} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			require.NoError(t, f.db.Conn().Exec(t.Context(), "ALTER TABLE outcomes ADD CONSTRAINT sane CHECK tenant != 'evil'"))
			rows := make([]row.Outcome, 1000)
			for i := range rows {
				o := outcome(i, now)
				if i == bad {
					o.Tenant = "evil"
				}
				r, err := row.FromOutcome(rec(event.TopicOutcomes, int64(i), now), o)
				require.NoError(t, err)
				rows[i] = r
			}
			b := batch(row.Outcomes(rows), 0, 999)
			for range 2 {
				rejected, err := f.w.Insert(t.Context(), b)
				require.NoError(t, err)
				require.Len(t, rejected, 1)
				require.EqualValues(t, bad, rejected[0].Base.Offset)
				require.ErrorContains(t, rejected[0].Err, "sane")
			}
			require.EqualValues(t, 999, f.count("SELECT count() FROM outcomes"))
		})
	}
}

func TestClassify(t *testing.T) {
	f := setup(t)
	require.NoError(t, f.db.Conn().Exec(t.Context(), "DROP TABLE decisions"))
	r, err := row.FromDecision(rec(event.TopicDecisions, 1, now), event.RouteDecision{DecisionID: "d", TaskID: "t", Kind: event.Route, DecidedAt: now})
	require.NoError(t, err)
	_, err = f.w.Insert(t.Context(), batch(row.Decisions([]row.Decision{r}), 1, 1))
	kind, code := history.Classify(err)
	require.Equal(t, history.FaultSetup, kind, "a missing table waits for a person: %v", err)
	require.EqualValues(t, 60, code)

	down, err := history.Open(history.Config{Addr: []string{"127.0.0.1:1"}})
	require.NoError(t, err)
	defer func() { _ = down.Close() }()
	_, err = history.NewWriter(down).Insert(t.Context(), batch(outcomes(t, 0, 1, now), 0, 0))
	kind, code = history.Classify(err)
	require.Equal(t, history.FaultTransient, kind)
	require.Zero(t, code)
	kind, _ = history.Classify(context.DeadlineExceeded)
	require.Equal(t, history.FaultTransient, kind)
}

func TestTokens(t *testing.T) {
	rows := outcomes(t, 0, 1, now)
	token := func(ranges ...history.Range) string { return history.Batch{Rows: rows, Ranges: ranges}.Token() }
	a, b := history.Range{TopicID: "x", Partition: 0, First: 1, Last: 5}, history.Range{TopicID: "x", Partition: 1, First: 1, Last: 5}
	require.Equal(t, token(a, b), token(b, a), "the order in which partitions were polled is no identity")
	other := a
	other.Last = 6
	again := a
	again.TopicID = "y"
	seen := map[string]bool{}
	for _, s := range []string{token(a), token(b), token(a, b), token(other), token(again)} {
		require.False(t, seen[s], s)
		seen[s] = true
	}
}
