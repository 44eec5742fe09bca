package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func at(s int) time.Time { return epochStart.Add(time.Duration(s) * time.Second) }

func lease(epoch int64, owner string) Record {
	return Record{Kind: KindLease, Epoch: epoch, Owner: owner, Key: LeaseKey(0)}
}

func rec(kind Kind, epoch int64, owner, task string, n int) Record {
	return Record{
		Kind: kind, Epoch: epoch, Owner: owner, Key: AttemptKey(task, n), TaskID: task, Attempt: n,
		Deadline: at(1000), Payload: []byte(`{"by":"` + owner + `"}`),
	}
}

func final(r Record) Record { r.Final = true; return r }

// Each case is a log, one record a second, with the verdict each record gets.
func TestVerdicts(t *testing.T) {
	type line struct {
		r    Record
		want Reason
	}
	late := rec(KindClaim, 1, "A", "t", 1)
	late.Deadline = at(1)
	lateEnd := rec(KindEnd, 1, "A", "t", 1)
	lateEnd.Deadline = at(1)
	nowhen := rec(KindEnd, 1, "A", "t", 1)
	nowhen.Deadline = time.Time{}
	moved := rec(KindClaim, 1, "A", "t", 1)
	moved.TaskID = "other"
	for name, log := range map[string][]line{
		"first lease is epoch one":        {{lease(2, "A"), ReasonEpochGap}, {lease(1, "A"), ReasonAccepted}},
		"the second of two leases loses":  {{lease(1, "A"), ReasonAccepted}, {lease(1, "B"), ReasonEpochTaken}, {lease(2, "B"), ReasonAccepted}},
		"nothing counts without a lease":  {{rec(KindClaim, 1, "A", "t", 1), ReasonEpochGap}},
		"a record behind a newer lease":   {{lease(1, "A"), ReasonAccepted}, {lease(2, "B"), ReasonAccepted}, {rec(KindClaim, 1, "A", "t", 1), ReasonStaleEpoch}},
		"same owner, older epoch":         {{lease(1, "A"), ReasonAccepted}, {lease(2, "A"), ReasonAccepted}, {rec(KindEnd, 1, "A", "t", 1), ReasonStaleEpoch}},
		"right epoch, wrong owner":        {{lease(1, "A"), ReasonAccepted}, {rec(KindClaim, 1, "B", "t", 1), ReasonNotOwner}},
		"claim again, as after a look-up": {{lease(1, "A"), ReasonAccepted}, {rec(KindClaim, 1, "A", "t", 1), ReasonAccepted}, {rec(KindClaim, 1, "A", "t", 1), ReasonAccepted}},
		"one end for each attempt": {
			{lease(1, "A"), ReasonAccepted},
			{rec(KindClaim, 1, "A", "t", 1), ReasonAccepted},
			{rec(KindSubmitted, 1, "A", "t", 1), ReasonAccepted},
			{rec(KindEnd, 1, "A", "t", 1), ReasonAccepted},
			{rec(KindEnd, 1, "A", "t", 1), ReasonAttemptEnded},
			{rec(KindClaim, 1, "A", "t", 1), ReasonAttemptEnded},
			{rec(KindSubmitted, 1, "A", "t", 1), ReasonAttemptEnded},
			{rec(KindClaim, 1, "A", "t", 2), ReasonAccepted},
		},
		"an adopted attempt is ended by its new owner": {
			{lease(1, "A"), ReasonAccepted},
			{rec(KindClaim, 1, "A", "t", 1), ReasonAccepted},
			{lease(2, "B"), ReasonAccepted},
			{rec(KindEnd, 2, "B", "t", 1), ReasonAccepted},
			{rec(KindEnd, 1, "A", "t", 1), ReasonStaleEpoch},
		},
		"an end without a claim, and no claim after it": {
			{lease(1, "A"), ReasonAccepted},
			{rec(KindEnd, 1, "A", "t", 1), ReasonAccepted},
			{rec(KindClaim, 1, "A", "t", 1), ReasonAttemptEnded},
		},
		"nothing of a Task after its final end": {
			{lease(1, "A"), ReasonAccepted},
			{rec(KindClaim, 1, "A", "t", 1), ReasonAccepted},
			{final(rec(KindEnd, 1, "A", "t", 2)), ReasonAccepted},
			{rec(KindEnd, 1, "A", "t", 1), ReasonTaskEnded},
			{final(rec(KindEnd, 1, "A", "t", 2)), ReasonTaskEnded},
			{rec(KindClaim, 1, "A", "t", 3), ReasonTaskEnded},
			{rec(KindSubmitted, 1, "A", "t", 1), ReasonTaskEnded},
			{rec(KindClaim, 1, "A", "u", 1), ReasonAccepted},
		},
		"no claim at or past the deadline, but an end": {
			{lease(1, "A"), ReasonAccepted}, {late, ReasonExpired}, {lateEnd, ReasonAccepted},
		},
		"submitted needs a claim":        {{lease(1, "A"), ReasonAccepted}, {rec(KindSubmitted, 1, "A", "t", 1), ReasonNotClaimed}},
		"a kind from the future":         {{lease(1, "A"), ReasonAccepted}, {rec("paused", 1, "A", "t", 1), ReasonUnknownKind}},
		"an end that can't be forgotten": {{lease(1, "A"), ReasonAccepted}, {nowhen, ReasonMalformed}},
		"an attempt does not change its Task": {
			{lease(1, "A"), ReasonAccepted}, {rec(KindClaim, 1, "A", "t", 1), ReasonAccepted}, {moved, ReasonMalformed},
		},
		"no owner": {{lease(1, ""), ReasonMalformed}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFold(Anchor{})
			for i, l := range log {
				v := f.Apply(int64(i), at(i), l.r)
				require.Equal(t, l.want, v.Reason, "record %d", i)
				require.Equal(t, l.want == ReasonAccepted, v.Accepted, "record %d", i)
			}
		})
	}
}

func TestStateReaders(t *testing.T) {
	f := NewFold(Anchor{})
	_, ok := f.Task("t")
	require.False(t, ok)
	f.Apply(0, at(0), lease(1, "A"))
	f.Apply(3, at(3), rec(KindClaim, 1, "A", "t", 1))
	f.Apply(4, at(4), rec(KindEnd, 1, "A", "t", 1))
	f.Apply(6, at(6), rec(KindClaim, 1, "A", "u", 1))
	require.Equal(t, ReasonOutOfOrder, f.Apply(6, at(6), lease(2, "B")).Reason)
	require.Equal(t, ReasonUnread, f.Skip(7, at(7)).Reason)

	open := f.Open()
	require.Len(t, open, 1)
	require.Equal(t, "u/1", open[0].Key)
	require.Equal(t, int64(6), open[0].Claim.Offset)
	waiting := f.Waiting()
	require.Len(t, waiting, 1)
	require.Equal(t, "t", waiting[0].ID)
	require.Nil(t, waiting[0].Final)
	require.Equal(t, int64(8), f.Next())
	require.Equal(t, at(7), f.At())
	require.True(t, f.Holds(1, "A"))

	f.Apply(8, at(8), final(rec(KindEnd, 1, "A", "t", 2)))
	require.Empty(t, f.Waiting())
	task, _ := f.Task("t")
	require.Equal(t, "t/2", task.FinalKey)
	require.JSONEq(t, `{"by":"A"}`, string(task.Final.Payload))
}

func TestForgetAndCheckpoint(t *testing.T) {
	f := NewFold(Anchor{})
	require.Equal(t, Anchor{}, f.Checkpoint())
	f.Apply(0, at(0), lease(1, "A"))
	f.Apply(1, at(1), final(rec(KindEnd, 1, "A", "old", 1)))
	f.Apply(2, at(2), lease(2, "B"))
	f.Apply(3, at(3), rec(KindClaim, 2, "B", "open", 1))
	require.Equal(t, Anchor{Offset: 1, Epoch: 1, Owner: "A"}, f.Checkpoint())

	require.Zero(t, f.Forget(at(1000)), "the deadline itself is not before it")
	require.Equal(t, 1, f.Forget(at(1001)))
	require.Equal(t, Anchor{Offset: 3, Epoch: 2, Owner: "B"}, f.Checkpoint())
	require.Len(t, f.Open(), 1, "an open attempt is never forgotten")

	f.Apply(4, at(2000), final(rec(KindEnd, 2, "B", "open", 1)))
	require.Equal(t, 1, f.Forget(at(2000)))
	require.Equal(t, Anchor{Offset: 5, Epoch: 2, Owner: "B"}, f.Checkpoint())
	require.Zero(t, f.Len())
}

func TestPayloadLimit(t *testing.T) {
	f := NewFold(Anchor{}, WithPayloadLimit(4))
	f.Apply(0, at(0), lease(1, "A"))
	f.Apply(1, at(1), final(rec(KindEnd, 1, "A", "t", 1)))
	task, _ := f.Task("t")
	require.True(t, task.Final.Trimmed)
	require.Nil(t, task.Final.Payload)
	require.Equal(t, int64(1), task.Final.Offset)
}

// A start whose lease is unknown finds it by what it reads, and never takes the partition with an epoch that is taken.
func TestInferredStart(t *testing.T) {
	f := NewFold(Anchor{Offset: 10, Inferred: true})
	require.True(t, f.Apply(10, at(0), rec(KindClaim, 7, "A", "t", 1)).Accepted, "only a holder writes claims")
	require.Equal(t, ReasonNotOwner, f.Apply(11, at(1), rec(KindClaim, 7, "B", "t", 1)).Reason)
	require.True(t, f.Apply(12, at(2), lease(9, "C")).Accepted, "somebody held 8, before our start")
	require.True(t, f.Apply(13, at(3), rec(KindClaim, 9, "D", "u", 1)).Accepted, "so the lease of C had lost to D's")
	require.Equal(t, ReasonStaleEpoch, f.Apply(14, at(4), rec(KindEnd, 7, "A", "t", 1)).Reason)
	require.Equal(t, int64(10), f.Lease(0, "E").Epoch)
}

func TestLeaseCarriesASoundStart(t *testing.T) {
	f := NewFold(Anchor{})
	log := []Record{lease(1, "A"), rec(KindClaim, 1, "A", "t", 1), lease(2, "B"), rec(KindEnd, 2, "B", "t", 1)}
	for i, r := range log {
		f.Apply(int64(i), at(i), r)
	}
	l := f.Lease(3, "C")
	require.Equal(t, Record{Kind: KindLease, Epoch: 3, Owner: "C", Key: "lease/3", Prev: &Anchor{Offset: 2, Epoch: 1, Owner: "A"}}, l)
	g := NewFold(*l.Prev)
	for i := l.Prev.Offset; i < int64(len(log)); i++ {
		require.True(t, g.Apply(i, at(int(i)), log[i]).Accepted)
	}
	require.True(t, g.Holds(2, "B"))
}

func TestRecordRoundTrip(t *testing.T) {
	r := final(rec(KindEnd, 1, "A", "t<1>", 2))
	r.Payload = []byte(`{"sql":"a < b && c > d","n":9007199254740993}`)
	b, err := r.Encode()
	require.NoError(t, err)
	require.Contains(t, string(b), `"a < b && c > d"`)
	got, err := Decode(b)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(r, got))

	_, err = Decode([]byte(`{"kind":"claim","epoch":1,"owner":"A","future":{"x":1}}`))
	require.NoError(t, err)
	_, err = Decode([]byte(`nope`))
	require.Error(t, err)
	_, err = Record{Kind: KindClaim, Epoch: 1, Owner: "A", Key: "t/1", TaskID: "t"}.Encode()
	require.ErrorIs(t, err, errNoDeadline)
}

func TestAttemptKeys(t *testing.T) {
	for key, want := range map[string]struct {
		id string
		n  int
	}{"t/1": {"t", 1}, "a/b/12": {"a/b", 12}} {
		id, n, ok := SplitAttemptKey(key)
		require.True(t, ok, key)
		require.Equal(t, want.id, id)
		require.Equal(t, want.n, n)
	}
	for _, key := range []string{"", "t", "/1", "t/", "t/0", "t/01", "t/x", LeaseKey(4)} {
		_, _, ok := SplitAttemptKey(key)
		require.False(t, ok, key)
	}
}
