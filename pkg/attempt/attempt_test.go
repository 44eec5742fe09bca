package attempt_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/attempt"
)

var update = flag.Bool("update", false, "write docs/state-machines.md anew")

func TestReportIsCommitted(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "state-machines.md")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(page), 0o755))
		require.NoError(t, os.WriteFile(page, []byte(attempt.Report()), 0o644))
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	if diff := cmp.Diff(string(have), attempt.Report()); diff != "" {
		t.Fatalf("the page is not what the table says; run go generate ./pkg/attempt:\n%s", diff)
	}
}

// each calls f for every pair that the table has.
func each(f func(s attempt.State, e attempt.Event, t attempt.Transition)) {
	for _, s := range attempt.States() {
		for _, e := range attempt.Events() {
			if t, err := attempt.Apply(s, e); err == nil {
				f(s, e, t)
			}
		}
	}
}

func TestUnknownPairIsATypedError(t *testing.T) {
	for _, c := range []struct {
		s attempt.State
		e attempt.Event
	}{
		{attempt.Succeeded, attempt.CancelWished}, {attempt.AwaitingSlot, attempt.Delivered}, {"", attempt.Placed}, {attempt.Running, "sneezed"},
	} {
		_, err := attempt.Apply(c.s, c.e)
		var missing *attempt.NoTransitionError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, attempt.NoTransitionError{State: c.s, Event: c.e}, *missing)
	}
}

func TestApplyHandsOutCopies(t *testing.T) {
	first, err := attempt.Apply(attempt.Start, attempt.Placed)
	require.NoError(t, err)
	first.Do[0] = "broken"
	second, err := attempt.Apply(attempt.Start, attempt.Placed)
	require.NoError(t, err)
	require.Equal(t, attempt.Announce, second.Do[0])
}

func TestEveryTransitionIsWellFormed(t *testing.T) {
	each(func(s attempt.State, e attempt.Event, tr attempt.Transition) {
		require.Contains(t, attempt.States(), tr.Next)
		require.NotEmpty(t, tr.Why, "%s/%s", s, e)
		require.NotEmpty(t, tr.Do, "%s/%s", s, e)
		for i, d := range tr.Do {
			require.Contains(t, attempt.Effects(), d, "%s/%s", s, e)
			if d.Yields() {
				require.Equal(t, len(tr.Do)-1, i, "%s/%s: what yields the next event comes last", s, e)
			}
		}
		last := tr.Do[len(tr.Do)-1]
		switch {
		case tr.Next.Terminal():
			require.Equal(t, attempt.WriteEnd, last, "%s/%s: an end is in the ledger", s, e)
			require.Contains(t, tr.Do, attempt.FreeSlot, "%s/%s: an end keeps no slot", s, e)
			require.Less(t, slices.Index(tr.Do, attempt.FreeSlot), len(tr.Do)-1)
		case last == attempt.LetGo:
			require.Equal(t, attempt.Abandoned, e)
			require.Equal(t, s, tr.Next, "a process that stops changes nothing")
			require.NotContains(t, tr.Do, attempt.StopEngine, "a query at the engine is left to the next owner")
			require.NotContains(t, tr.Do, attempt.WriteEnd, "a shutdown never uses an attempt up")
		default:
			require.True(t, last.Yields(), "%s/%s: the attempt would stand still", s, e)
		}
	})
}

func TestWhateverIsAtTheEngineIsStoppedBeforeItsSlotIsFree(t *testing.T) {
	each(func(s attempt.State, e attempt.Event, tr attempt.Transition) {
		if !s.AtEngine() || !tr.Next.Terminal() {
			return
		}
		switch e {
		case attempt.CancelWished, attempt.DeadlinePassed, attempt.EstimateOverran:
			stop, free := slices.Index(tr.Do, attempt.StopEngine), slices.Index(tr.Do, attempt.FreeSlot)
			require.GreaterOrEqual(t, stop, 0, "%s/%s", s, e)
			require.Less(t, stop, free, "%s/%s", s, e)
		}
	})
}

func TestSubmissionNeedsAStandingClaim(t *testing.T) {
	each(func(s attempt.State, e attempt.Event, tr attempt.Transition) {
		if slices.Contains(tr.Do, attempt.Submit) {
			require.Equal(t, attempt.Claimed, s)
			require.Equal(t, attempt.GuardHeld, e)
		}
		if tr.Next == attempt.Claimed && s != attempt.Claimed {
			require.Equal(t, attempt.ClaimStood, e)
		}
	})
}

func TestEveryStateThatIsNoEndCanBeLeftAndReached(t *testing.T) {
	leads := map[attempt.State][]attempt.State{}
	each(func(s attempt.State, _ attempt.Event, tr attempt.Transition) { leads[s] = append(leads[s], tr.Next) })
	reach := func(from attempt.State) map[attempt.State]bool {
		seen, todo := map[attempt.State]bool{from: true}, []attempt.State{from}
		for len(todo) > 0 {
			s := todo[0]
			todo = todo[1:]
			for _, n := range leads[s] {
				if !seen[n] {
					seen[n] = true
					todo = append(todo, n)
				}
			}
		}
		return seen
	}
	fromStart := reach(attempt.Start)
	for _, s := range attempt.States() {
		require.True(t, fromStart[s], "%s can't be reached", s)
		if s.Terminal() {
			require.Empty(t, leads[s], "%s is an end", s)
			continue
		}
		require.True(t, slices.ContainsFunc(attempt.States(), func(e attempt.State) bool { return e.Terminal() && reach(s)[e] }), "%s can't end", s)
		for _, e := range []attempt.Event{attempt.CancelWished, attempt.DeadlinePassed, attempt.Abandoned} {
			_, err := attempt.Apply(s, e)
			require.NoError(t, err, "these can come at any time")
		}
	}
}

// once are effects that must not happen twice in the life of an attempt. Slots are given back and the engine is stopped as often
// as need be; those are no effects that add up.
var once = []attempt.Effect{attempt.Submit, attempt.NoteSubmitted, attempt.Deliver, attempt.WriteEnd}

// gone are the events after which the engine has nothing of an attempt any more.
var gone = []attempt.Event{
	attempt.GuardRanOut, attempt.NotReached, attempt.EngineFailed, attempt.Delivered, attempt.FoundGoneRead, attempt.FoundGoneWrite,
	attempt.FoundFinished, attempt.FoundFailed,
}

// life is an attempt as the world sees it.
type life struct {
	state attempt.State
	done  map[attempt.Effect]int
	// claimed and noted are what the ledger says; atEngine whether the engine may have something of it.
	claimed, noted, atEngine bool
}

func handled(s attempt.State) (out []attempt.Event) {
	for _, e := range attempt.Events() {
		if _, err := attempt.Apply(s, e); err == nil {
			out = append(out, e)
		}
	}
	return out
}

// step takes one event.
func (l *life) step(t *rapid.T, e attempt.Event) {
	tr, err := attempt.Apply(l.state, e)
	require.NoError(t, err)
	if slices.Contains(gone, e) {
		l.atEngine = false
	}
	if e == attempt.GuardRanOut { // nothing was sent: it counts as not submitted
		l.done[attempt.Submit] = 0
	}
	l.claimed = l.claimed || e == attempt.ClaimStood
	for _, d := range tr.Do {
		l.done[d]++
		switch d {
		case attempt.Submit:
			require.True(t, l.claimed, "nothing is sent before its claim stands")
			l.atEngine = true
		case attempt.NoteSubmitted:
			l.noted = true
		case attempt.StopEngine:
			l.atEngine = false
		}
	}
	for _, d := range once {
		require.LessOrEqual(t, l.done[d], 1, "%s twice in one attempt", d)
	}
	l.state = tr.Next
	require.Equal(t, l.state.Terminal(), l.done[attempt.WriteEnd] == 1)
}

// TestLives walks the lives of Tasks: attempts one after the other, with owners that go away and others that take over. Whatever
// happens, an attempt is submitted once, noted once, delivered once and ended once, and when the next one of its Task begins the
// engine has nothing of the one before.
func TestLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range rapid.IntRange(1, 4).Draw(t, "attempts") {
			l := &life{state: attempt.Start, done: map[attempt.Effect]int{}}
			l.step(t, attempt.Placed)
			for steps := 0; !l.state.Terminal(); steps++ {
				if steps > 80 {
					return // it goes on for ever, and nothing was wrong so far
				}
				e := rapid.SampledFrom(handled(l.state)).Draw(t, "event")
				l.step(t, e)
				if e != attempt.Abandoned {
					continue
				}
				// Its next owner knows what the ledger says, and no more.
				switch {
				case l.noted:
					l.state = attempt.Running
				case l.claimed:
					l.state = attempt.Claimed
				default:
					l.state = attempt.Start
					l.step(t, attempt.Placed)
					continue
				}
				l.step(t, attempt.TakenOver)
			}
			require.Empty(t, handled(l.state))
			require.Equal(t, 1, l.done[attempt.WriteEnd], "one end")
			require.False(t, l.atEngine, "the next attempt would run beside this one")
		}
	})
}

func TestErrorText(t *testing.T) {
	_, err := attempt.Apply(attempt.Lost, attempt.Placed)
	require.EqualError(t, err, "an attempt that is lost can't take the event placed")
}

// The report of pairs is whole only if the lists are: a name that is declared and not listed would be in no row of it.
func TestListsHaveEveryNameThatIsDeclared(t *testing.T) {
	declared := map[string][]string{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, named := spec.Type.(*ast.Ident)
			text, literal := spec.Values[0].(*ast.BasicLit)
			if named && literal && text.Kind == token.STRING {
				value, err := strconv.Unquote(text.Value)
				require.NoError(t, err)
				declared[kind.Name] = append(declared[kind.Name], value)
			}
			return true
		})
	}
	require.ElementsMatch(t, declared["State"], texts(attempt.States()))
	require.ElementsMatch(t, declared["Event"], texts(attempt.Events()))
	require.ElementsMatch(t, declared["Effect"], texts(attempt.Effects()))
}

func texts[T ~string](list []T) (out []string) {
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// Nothing is listed that the machine has no use for.
func TestEveryEventAndEffectIsInTheTable(t *testing.T) {
	used := map[string]bool{}
	each(func(_ attempt.State, e attempt.Event, tr attempt.Transition) {
		used[string(e)] = true
		for _, d := range tr.Do {
			used[string(d)] = true
		}
	})
	for _, name := range append(texts(attempt.Events()), texts(attempt.Effects())...) {
		require.True(t, used[name], name)
	}
}
