package budget_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/signal"
)

// book is a partition with one owner, whose records all come back.
type book struct {
	t *testing.T
	*budget.Sessions
	fold *ledger.Fold
	log  []entry
	now  time.Time
}

func newBook(t *testing.T) *book {
	s := budget.NewSessions(time.Hour)
	b := &book{t: t, Sessions: s, fold: ledger.NewFold(ledger.Anchor{}, ledger.WithState(s)), now: now}
	b.apply(b.fold.Lease(0, "r"))
	return b
}

func (b *book) apply(r ledger.Record) ledger.Verdict {
	if r.Kind != ledger.KindLease {
		r.Epoch, r.Owner = b.fold.Epoch(), b.fold.Owner()
	}
	b.log = append(b.log, entry{r, b.now})
	return b.fold.Apply(int64(len(b.log)-1), b.now, r)
}

func (b *book) write(batch *budget.Batch) {
	b.t.Helper()
	recs, err := batch.Records()
	require.NoError(b.t, err)
	for _, r := range recs {
		require.True(b.t, b.apply(r).Accepted)
	}
}

func (b *book) admit(q budget.Query) {
	batch := b.Batch(b.now, []budget.Query{q}, nil)
	batch.Admit(q)
	b.write(batch)
}

func (b *book) usage(session string) budget.Usage {
	u, _ := b.Usage(budget.SessionKey{Tenant: "t", Session: session})
	return u
}

func ask(id, session string, bytes int64) budget.Query {
	return budget.Query{
		Key: budget.SessionKey{Tenant: "t", Session: session}, TaskID: id, Deadline: now.Add(10 * time.Minute), Bytes: &bytes, Text: budget.Digest(id), Group: 1,
	}
}

func TestReserveAndSettle(t *testing.T) {
	b := newBook(t)
	b.admit(ask("a", "s", 100))
	unknown := ask("b", "s", 0)
	unknown.Bytes, unknown.WallMs = nil, 50
	b.admit(unknown)
	require.Equal(t, budget.Usage{Queries: 2, Bytes: 100, WallMs: 50, UnknownBytes: 1}, b.usage("s"))

	b.write(b.Batch(b.now, nil, []budget.Ended{
		{Key: ask("a", "s", 0).Key, TaskID: "a", Bytes: new(int64(40)), WallMs: new(int64(7))},
		{Key: ask("a", "s", 0).Key, TaskID: "a", Bytes: new(int64(999))}, // twice is once
		{Key: ask("a", "s", 0).Key, TaskID: "stranger", Bytes: new(int64(1))},
		{Key: ask("a", "other", 0).Key, TaskID: "b", Bytes: new(int64(1))},
	}))
	require.Equal(t, budget.Usage{Queries: 2, Bytes: 40, WallMs: 57, UnknownBytes: 1}, b.usage("s"))
	b.write(b.Batch(b.now, nil, []budget.Ended{{Key: unknown.Key, TaskID: "b", Void: true}}))
	require.Equal(t, budget.Usage{Queries: 1, Bytes: 40, WallMs: 7}, b.usage("s"), "what never ran costs nothing")
	require.Empty(t, b.OpenTasks())
}

func TestRepeatsGetTheSameAnswer(t *testing.T) {
	b := newBook(t)
	q := ask("a", "s", 100)
	b.admit(q)
	b.admit(ask("b", "s", 5))
	batch := b.Batch(b.now, []budget.Query{q}, nil)
	require.Equal(t, budget.Account{Admitted: true}, batch.Account(q), "as it was when it was admitted")
	batch.Admit(q)
	batch.Refuse(q, event.Rejection{Code: "late"})
	recs, err := batch.Records()
	require.NoError(t, err)
	require.Empty(t, recs)

	no := ask("c", "s", 100)
	batch = b.Batch(b.now, []budget.Query{no}, nil)
	batch.Refuse(no, event.Rejection{Code: "too much"})
	b.write(batch)
	again := b.Batch(b.now, []budget.Query{no}, nil).Account(no)
	require.False(t, again.Admitted)
	require.Equal(t, "too much", again.Refused.Code)
	require.EqualValues(t, 2, b.usage("s").Queries, "a refusal costs nothing")
}

// A refusal may name a thousand tables; its record has to fit into the ledger all the same.
func TestLongAnswersAreCut(t *testing.T) {
	b := newBook(t)
	q := ask("a", "s", 1)
	batch := b.Batch(b.now, []budget.Query{q}, nil)
	batch.Refuse(q, event.Rejection{Code: "no_candidate", Message: strings.Repeat("é", 1<<20), Suggestion: "short"})
	recs, err := batch.Records()
	require.NoError(t, err)
	require.Less(t, len(recs[0].Payload), 10_000)
	b.write(batch)
	again := b.Batch(b.now, []budget.Query{q}, nil).Account(q).Refused
	require.Equal(t, "short", again.Suggestion)
	require.True(t, utf8.ValidString(again.Message))
}

// Each Task of a batch sees those before it, and none can be charged to a session of another tenant.
func TestBatchSeesItself(t *testing.T) {
	b := newBook(t)
	one, two := ask("a", "s", 10), ask("b", "s", 20)
	other := ask("c", "s", 40)
	other.Key.Tenant = "somebody else"
	batch := b.Batch(b.now, []budget.Query{one, two, other}, nil)
	batch.Admit(one)
	require.Equal(t, budget.Usage{Queries: 1, Bytes: 10}, batch.Account(two).Usage)
	require.Zero(t, batch.Account(other).Usage)
	batch.Admit(two)
	b.write(batch)
	require.Equal(t, budget.Usage{Queries: 2, Bytes: 30}, b.usage("s"))
}

func TestSessionsEnd(t *testing.T) {
	b := newBook(t)
	b.admit(ask("a", "s", 100))
	b.now = b.now.Add(50 * time.Minute)
	b.admit(ask("b", "s", 100))
	require.EqualValues(t, 2, b.usage("s").Queries)
	b.now = b.now.Add(62 * time.Minute)
	require.Zero(t, b.Batch(b.now, []budget.Query{ask("c", "s", 1)}, nil).Account(ask("c", "s", 1)).Usage)
	late, err := b.Batch(now, nil, []budget.Ended{{Key: ask("a", "s", 0).Key, TaskID: "a", Bytes: new(int64(1))}}).Records()
	require.NoError(t, err)
	require.Equal(t, budget.ReasonSessionOver, b.apply(late[0]).Reason)
	b.admit(ask("c", "s", 7))
	require.Equal(t, budget.Usage{Queries: 1, Bytes: 7}, b.usage("s"), "it begins anew")
	require.Zero(t, b.Forget(b.now))
	require.Equal(t, 1, b.Forget(b.now.Add(2*time.Hour)))
}

// A session whose Task may still run is not over, however silent it is.
func TestSessionsOutliveTheirTasks(t *testing.T) {
	b := newBook(t)
	q := ask("a", "s", 100)
	q.Deadline = now.Add(5 * time.Hour)
	b.admit(q)
	require.Zero(t, b.Forget(now.Add(5*time.Hour)))
	require.Equal(t, 1, b.Forget(now.Add(5*time.Hour+2*time.Minute)))
}

// What a session remembers stays bounded while it presses on its budget, and so does what a new owner has to read.
func TestAccountsStaySmall(t *testing.T) {
	b := newBook(t)
	for i := range 20_000 {
		q := ask(fmt.Sprint("q", i), "s", 1)
		q.Deadline = b.now.Add(time.Minute)
		batch := b.Batch(b.now, []budget.Query{q}, nil)
		batch.Refuse(q, event.Rejection{Code: "no"})
		b.write(batch)
		b.now = b.now.Add(10 * time.Millisecond)
	}
	data, err := b.Snapshot()
	require.NoError(t, err)
	require.Less(t, len(data), 1<<20, "a balance fits into a record")

	a := b.fold.Checkpoint()
	require.EqualValues(t, 1, a.Offset)
	recs, err := b.Upkeep(b.now, 100)
	require.NoError(t, err)
	require.Len(t, recs, 1)
	require.True(t, b.apply(recs[0]).Accepted)
	require.EqualValues(t, len(b.log)-1, b.fold.Checkpoint().Offset, "nothing before the balance is needed")

	for i := range 50 {
		b.admit(ask("x", fmt.Sprint("more", i), 1))
	}
	recs, err = b.Upkeep(time.Time{}, 10)
	require.NoError(t, err)
	require.Len(t, recs, 41)
	for _, r := range recs {
		require.Equal(t, budget.KindClose, r.Kind)
		require.True(t, b.apply(r).Accepted)
	}
	require.Equal(t, 10, b.Len())
}

func TestVerdictsOfBudgetRecords(t *testing.T) {
	b := newBook(t)
	bad := func(kind ledger.Kind, payload string) ledger.Reason {
		return b.apply(ledger.Record{Kind: kind, Key: "s", TaskID: "a", Payload: []byte(payload)}).Reason
	}
	require.Equal(t, ledger.ReasonMalformed, bad(budget.KindReserve, `{"tenant":7}`))
	require.Equal(t, ledger.ReasonMalformed, bad(budget.KindReserve, `{"tenant":"t"}`), "no session")
	require.Equal(t, ledger.ReasonMalformed, bad(budget.KindRefuse, `[]`))
	require.Equal(t, ledger.ReasonMalformed, bad(budget.KindSettle, `"x"`))
	require.Equal(t, ledger.ReasonMalformed, bad(budget.KindBalance, `{}`))
	require.Equal(t, ledger.ReasonMalformed, bad(budget.KindBalance, `{"tenant":"t","session":"s","entries":[null]}`))
	require.Equal(t, ledger.ReasonUnknownKind, bad("later", `{}`))
	require.Equal(t, budget.ReasonSessionOver, bad(budget.KindSettle, `{"tenant":"t","session":"s"}`))
	b.admit(ask("a", "s", 1))
	require.Equal(t, budget.ReasonRepeat, bad(budget.KindReserve, `{"tenant":"t","session":"s"}`))
	require.Equal(t, ledger.ReasonStaleEpoch, func() ledger.Reason {
		r := b.fold.Lease(0, "next")
		b.apply(r)
		late := ledger.Record{Kind: budget.KindReserve, Epoch: 1, Owner: "r", Key: "s", TaskID: "z", Payload: []byte(`{"tenant":"t","session":"s"}`)}
		return b.fold.Apply(int64(len(b.log)), b.now, late).Reason
	}(), "a router that has lost its lease charges nothing")
}

func TestLoops(t *testing.T) {
	b := newBook(t)
	grow := func(id, text string, bytes int64) budget.Account {
		q := ask(id, "s", bytes)
		q.Text = budget.Digest(text)
		batch := b.Batch(b.now, []budget.Query{q}, nil)
		a := batch.Account(q)
		batch.Admit(q)
		b.write(batch)
		return a
	}
	require.EqualValues(t, 0, grow("1", "x", 100).Repeats)
	require.EqualValues(t, 1, grow("2", "x", 100).Repeats)
	a := grow("3", "y", 200)
	require.EqualValues(t, 0, a.Repeats)
	require.EqualValues(t, 2, a.Growing, "100, 200")
	require.EqualValues(t, 3, grow("4", "z", 300).Growing)
	require.EqualValues(t, 1, grow("5", "z2", 305).Growing, "a table that somebody writes to is no loop")
	require.EqualValues(t, 1, grow("6", "z3", 100).Growing)

	require.Equal(t, budget.Digest("f", "SELECT 1\n  FROM t"), budget.Digest("f", "SELECT 1 FROM t"))
	require.NotEqual(t, budget.Digest("f", "SELECT 1"), budget.Digest("f", "SELECT 2"))
	require.NotEqual(t, budget.Digest("a b"), budget.Digest("a", "b"))
}

// Whatever is in the log, a fold survives it, and one from its checkpoint agrees with it.
func FuzzSessions(f *testing.F) {
	f.Add("reserve", "q", `{"tenant":"t","session":"s","bytes":7,"text":"00000000000000ff","before":{"queries":1}}`, int64(5))
	f.Add("settle", "q", `{"tenant":"t","session":"s","bytes":-9223372036854775808,"wallMs":1}`, int64(0))
	f.Add("refuse", "q", `{"tenant":"t","session":"s","rejection":{"code":"x","left":{"bytes":{"state":"known"}}}}`, int64(1))
	f.Add("balance", "", `{"tenant":"t","session":"s","usage":{"queries":9},"entries":[{"task":"q","state":"open","n":3}],"recent":[{}]}`, int64(1))
	f.Add("close", "", `{"tenant":"t","session":"s"}`, int64(7200))
	f.Fuzz(func(t *testing.T, kind, task, payload string, seconds int64) {
		b := newBook(t)
		b.admit(ask("q", "s", 1))
		b.now = b.now.Add(time.Duration(seconds%(1<<20)) * time.Second)
		if kind == string(ledger.KindLease) {
			return
		}
		b.apply(ledger.Record{Kind: ledger.Kind(kind), Key: "s", TaskID: task, Deadline: b.now, Payload: []byte(payload)})
		b.admit(ask("later", "s", 1))
		before := b.now.Add(-time.Hour)
		b.fold.Forget(before)
		want, err := b.Snapshot()
		require.NoError(t, err)
		from := b.fold.Checkpoint()
		s := budget.NewSessions(time.Hour)
		again := ledger.NewFold(from, ledger.WithState(s))
		for i := from.Offset; i < int64(len(b.log)); i++ {
			again.Apply(i, b.log[i].at, b.log[i].r)
		}
		again.Forget(before)
		got, err := s.Snapshot()
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
	})
}

// The owner's idea of the broker's time runs ahead of what the records get: the session is not over for the one and has no second budget
// by the other.
func TestASessionThatIsOverForItsOwnerAlone(t *testing.T) {
	b := newBook(t)
	for i := range 3 {
		b.admit(ask(fmt.Sprint("a", i), "s", 1))
	}
	b.now = now.Add(time.Hour - time.Second)
	ahead := b.now.Add(30 * time.Second)
	for i := range 3 {
		q := ask(fmt.Sprint("b", i), "s", 1)
		q.Deadline = ahead.Add(time.Minute)
		batch := b.Batch(ahead, []budget.Query{q}, nil)
		if budget.Check(budget.Limits{MaxQueries: 3}, batch.Account(q), budget.Ask{}, ahead) == nil {
			batch.Admit(q)
		}
		b.write(batch)
	}
	require.EqualValues(t, 3, b.usage("s").Queries)
}

// A session that remembers more than a record holds has no balance for now, and does not keep others from theirs.
func TestABalanceFitsItsTopic(t *testing.T) {
	b := newBook(t)
	text := strings.Repeat("x", 2000)
	b.admit(ask("small", "other", 1))
	for i := range 1000 {
		q := ask(fmt.Sprint("q", i), "s", 1)
		batch := b.Batch(b.now, []budget.Query{q}, nil)
		batch.Refuse(q, event.Rejection{Code: "no", Message: text, Suggestion: text})
		b.write(batch)
	}
	recs, err := b.Upkeep(b.now.Add(time.Second), 10)
	require.NoError(t, err)
	require.Len(t, recs, 1)
	require.Equal(t, "other", recs[0].Key)
	recs, err = b.Upkeep(b.now, 1)
	require.NoError(t, err)
	require.Len(t, recs, 1)
	require.Equal(t, budget.KindClose, recs[0].Kind, "those that are too many still go")
}

// Balances of many sessions come in turns, and each has its own in the end.
func TestBalancesComeInTurns(t *testing.T) {
	b := newBook(t)
	for i := range 450 {
		b.admit(ask(fmt.Sprint("q", i), fmt.Sprint("s", i), 1))
	}
	before := b.now.Add(time.Second)
	b.now = b.now.Add(time.Minute)
	var turns []int
	for {
		recs, err := b.Upkeep(before, 1000)
		require.NoError(t, err)
		if len(recs) == 0 {
			break
		}
		turns = append(turns, len(recs))
		for _, r := range recs {
			require.True(t, b.apply(r).Accepted)
		}
	}
	require.Equal(t, []int{200, 200, 50}, turns)
}

// An estimate that no int64 holds is too much, and no gift.
func TestAnEstimateBeyondAllMeasure(t *testing.T) {
	for _, n := range []float64{1e19, math.MaxFloat64} {
		of := budget.Ask{Bytes: signal.Of(n, signal.Bytes, "catalog", now)}
		require.NotNil(t, budget.Check(budget.Limits{MaxBytes: 1000}, budget.Account{}, of, now), n)
		require.NotNil(t, budget.CheckTenant(budget.TenantLimits{MaxBytes: 1000, Window: time.Hour}, 0, budget.TenantAccount{}, of, now), n)
	}
	require.Zero(t, budget.WholeBytes(-1))
	require.Zero(t, budget.WholeBytes(math.NaN()))
	require.EqualValues(t, 1<<53, budget.WholeBytes(1<<53))
}
