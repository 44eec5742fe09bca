package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func foldOf(log ...Record) *Fold {
	f := NewFold(Anchor{})
	for i, r := range log {
		f.Apply(int64(i), at(i), r)
	}
	return f
}

func TestDriverFirstRun(t *testing.T) {
	f := foldOf(lease(1, "A"))
	d := NewDriver(f, "t/1", "t", DefaultGuard())
	require.Equal(t, ActionClaim, d.Action())
	require.True(t, d.MayEnd())
	require.False(t, d.MaySubmit(0), "nothing is submitted before the claim is read back")

	d.ClaimSent(time.Second)
	d.ClaimRead(f.Apply(1, at(1), rec(KindClaim, 1, "A", "t", 1)), f)
	require.Equal(t, ActionSubmit, d.Action())
	require.True(t, d.MaySubmit(time.Second+4999*time.Millisecond))
	require.Equal(t, ActionRun, d.Action())

	d.EndRead(f.Apply(2, at(2), final(rec(KindEnd, 1, "A", "t", 1))), f)
	require.Equal(t, ActionEmit, d.Action())
	payload, m := d.Ending()
	require.JSONEq(t, `{"by":"A"}`, string(payload))
	require.Equal(t, int64(2), m.Offset)
}

func TestDriverGuardRunsOut(t *testing.T) {
	f := foldOf(lease(1, "A"))
	d := NewDriver(f, "t/1", "t", DefaultGuard())
	d.ClaimSent(0)
	d.ClaimRead(f.Apply(1, at(1), rec(KindClaim, 1, "A", "t", 1)), f)
	require.False(t, d.MaySubmit(5*time.Second))
	require.Equal(t, ActionClaim, d.Action(), "claim again, with a new guard")
}

func TestDriverTakesOver(t *testing.T) {
	f := foldOf(lease(1, "A"), rec(KindClaim, 1, "A", "t", 1), lease(2, "B"))
	d := NewDriver(f, "t/1", "t", DefaultGuard())
	require.Equal(t, ActionLookUp, d.Action())
	require.False(t, d.MayEnd())
	require.Equal(t, at(7), d.GuardEnds())

	d.LookedUp(false, at(3))
	require.Equal(t, ActionWait, d.Action(), "too early to believe it")
	d.GuardPassed()
	require.Equal(t, ActionLookUp, d.Action())
	d.LookedUp(false, at(7))
	require.Equal(t, ActionClaim, d.Action())

	mute := NewDriver(f, "t/1", "t", DefaultGuard())
	mute.Unanswered(at(3))
	require.Equal(t, ActionWait, mute.Action(), "it may still be on its way")
	mute.GuardPassed()
	mute.Unanswered(at(7))
	require.Equal(t, ActionEnd, mute.Action())
	require.Equal(t, ReasonUnanswered, mute.Reason())
	require.True(t, mute.MayEnd())

	unsure := NewDriver(f, "t/1", "t", DefaultGuard())
	unsure.ClaimedBy(at(2))
	require.Equal(t, at(8), unsure.GuardEnds(), "no trust in the claim's own time")

	running := NewDriver(f, "t/1", "t", DefaultGuard())
	running.LookedUp(true, at(3))
	require.Equal(t, ActionRun, running.Action(), "what runs can be adopted at once")
}

func TestDriverLoses(t *testing.T) {
	f := foldOf(lease(1, "A"), lease(2, "B"))
	d := NewDriver(f, "t/1", "t", DefaultGuard())
	d.ClaimSent(0)
	d.ClaimRead(f.Apply(2, at(2), rec(KindClaim, 1, "A", "t", 1)), f)
	require.Equal(t, ActionStop, d.Action())
	require.Equal(t, ReasonStaleEpoch, d.Reason())
	require.False(t, d.MayEnd())

	e := NewDriver(f, "t/1", "t", DefaultGuard())
	e.EndRead(f.Apply(3, at(3), final(rec(KindEnd, 1, "A", "t", 1))), f)
	require.Equal(t, ActionStop, e.Action())
}

func TestDriverPublishesWhatTheLogSays(t *testing.T) {
	f := foldOf(lease(1, "A"), final(rec(KindEnd, 1, "A", "t", 1)))
	d := NewDriver(f, "t/2", "t", DefaultGuard())
	require.Equal(t, ActionEmit, d.Action())

	// an end written twice by one owner, because the first answer got lost: the first one is published
	g := foldOf(lease(1, "A"))
	e := NewDriver(g, "t/1", "t", DefaultGuard())
	first, second := final(rec(KindEnd, 1, "A", "t", 1)), final(rec(KindEnd, 1, "A", "t", 1))
	second.Payload = []byte(`"other"`)
	g.Apply(1, at(1), first)
	e.EndRead(g.Apply(2, at(2), second), g)
	require.Equal(t, ActionEmit, e.Action())
	payload, _ := e.Ending()
	require.JSONEq(t, `{"by":"A"}`, string(payload))

	// a non-final end by an earlier owner still has to be told on
	h := foldOf(lease(1, "A"), rec(KindEnd, 1, "A", "t", 1), lease(2, "B"))
	require.Equal(t, ActionEmit, NewDriver(h, "t/1", "t", DefaultGuard()).Action())
}

func TestDriverClaimPastDeadline(t *testing.T) {
	f := foldOf(lease(1, "A"))
	d := NewDriver(f, "t/1", "t", DefaultGuard())
	d.ClaimSent(0)
	d.ClaimRead(f.Apply(1, at(1000), rec(KindClaim, 1, "A", "t", 1)), f)
	require.Equal(t, ActionEnd, d.Action())
	require.Equal(t, ReasonExpired, d.Reason())
	require.True(t, d.MayEnd())
}
