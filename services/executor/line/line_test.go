package line_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/services/executor/line"
)

func granted(p *line.Place) bool {
	select {
	case <-p.Granted():
		return true
	default:
		return false
	}
}

// joining numbers those who come, in the order in which they do.
func joining(l *line.Line) func(priority int) *line.Place {
	var n uint64
	return func(priority int) *line.Place {
		n++
		return l.Join(priority, n, nil)
	}
}

func TestWhoeverIsTriedAgainKeepsItsOrder(t *testing.T) {
	l := line.New(1)
	holder := l.Join(0, 1, nil)
	later, again := l.Join(0, 3, nil), l.Join(0, 2, nil)
	holder.Leave()
	require.True(t, granted(again))
	require.False(t, granted(later))
}

func TestFirstComeFirstServedWithinAPriority(t *testing.T) {
	l := line.New(1)
	join := joining(l)
	holder := join(0)
	require.True(t, granted(holder))
	a, b, urgent := join(0), join(0), join(5)
	require.Equal(t, []int{2, 3, 1, 0}, []int{a.Position(), b.Position(), urgent.Position(), holder.Position()})
	holder.Leave()
	require.True(t, granted(urgent))
	require.False(t, granted(a))
	urgent.Leave()
	require.True(t, granted(a))
	require.False(t, granted(b))
	a.Leave()
	a.Leave()
	require.True(t, granted(b), "leaving twice frees one slot")
	slots, used, waiting := l.Load()
	require.Equal(t, []int{1, 1, 0}, []int{slots, used, waiting})
}

// TestTheNinthIsAdmitted is case P8: slots of attempts that went away while they waited must come back.
func TestTheNinthIsAdmitted(t *testing.T) {
	l := line.New(8)
	join := joining(l)
	var holders []*line.Place
	for range 8 {
		holders = append(holders, join(0))
	}
	gone, ninth := join(0), join(0)
	gone.Leave() // cancelled while it waited
	require.False(t, granted(ninth))
	holders[3].Leave()
	require.True(t, granted(ninth))
}

// others are whoever has to allow a slot: they are told what is asked for and given back.
type others struct {
	line   *line.Line
	needed bool
	asked  map[*line.Place]bool
	back   int
}

func (o *others) join(order uint64, key string) *line.Place {
	var place *line.Place
	return o.line.Join(0, order, &line.Ask{
		Key: key, Needed: func() bool { return o.needed },
		Send:   func(p *line.Place) { place = p; o.asked[p] = true },
		Return: func() { delete(o.asked, place); o.back++ },
	})
}

// TestWhoWaitsForOthersHoldsUpNobody is a cap on some of those who wait.
func TestWhoWaitsForOthersHoldsUpNobody(t *testing.T) {
	l := line.New(2)
	o := &others{line: l, needed: true, asked: map[*line.Place]bool{}}
	first, second, third := o.join(1, "capped"), o.join(2, "capped"), o.join(3, "capped")
	require.Equal(t, map[*line.Place]bool{first: true, second: true}, o.asked, "there are two slots for them")
	require.True(t, first.Asked())
	require.False(t, third.Asked())
	other := o.join(4, "free")
	require.Len(t, o.asked, 3)
	other.Answer()
	require.True(t, granted(other), "it need not wait for an answer that is not its own")
	plain := l.Join(0, 5, nil)
	require.True(t, granted(plain))
	require.Equal(t, 1, first.Position())

	first.Answer()
	require.False(t, granted(first))
	require.Equal(t, 1, o.back, "no slot is left here: others may have what was allowed")
	require.False(t, first.Asked())
	plain.Leave()
	require.True(t, first.Asked(), "now one is")
	first.Answer()
	first.Answer()
	require.True(t, granted(first))
	second.Leave()
	second.Answer()
	require.False(t, granted(second))
	other.Leave()
	require.True(t, third.Asked())
	o.needed = false
	fourth := o.join(6, "other key")
	require.True(t, granted(fourth), "there is no cap any more")
	third.Answer()
	require.False(t, granted(third))
	fourth.Leave()
	require.True(t, granted(third))
	slots, used, waiting := l.Load()
	require.Equal(t, []int{2, 2, 0}, []int{slots, used, waiting})
}

// TestWhoWasAllowedAndFoundNoSlotIsNotOvertakenAgain is a line that is never empty, of many that need not ask and one that has to.
func TestWhoWasAllowedAndFoundNoSlotIsNotOvertakenAgain(t *testing.T) {
	l := line.New(1)
	o := &others{line: l, needed: true, asked: map[*line.Place]bool{}}
	holder := l.Join(0, 1, nil)
	capped := o.join(2, "capped")
	a, b, c := l.Join(0, 3, nil), l.Join(0, 4, nil), l.Join(0, 5, nil)
	holder.Leave()
	require.True(t, capped.Asked())
	require.True(t, granted(a), "nobody knows yet whether the one in front may have it")
	capped.Answer()
	require.Equal(t, 1, o.back)
	a.Leave()
	require.True(t, capped.Asked())
	require.False(t, granted(b), "now the slot is kept")
	capped.Waits()
	require.True(t, granted(b), "it has to wait for others")
	capped.Waits()
	capped.Answer()
	b.Leave()
	require.False(t, granted(c))
	capped.Answer()
	require.True(t, granted(capped))
	capped.Waits()
	capped.Leave()
	require.True(t, granted(c))
	slots, used, waiting := l.Load()
	require.Equal(t, []int{1, 1, 0}, []int{slots, used, waiting})
}

// A slot that is kept for one who leaves goes to the next.
func TestASlotKeptForOneWhoLeaves(t *testing.T) {
	l := line.New(1)
	o := &others{line: l, needed: true, asked: map[*line.Place]bool{}}
	holder := l.Join(0, 1, nil)
	capped := o.join(2, "capped")
	a, b := l.Join(0, 3, nil), l.Join(0, 4, nil)
	holder.Leave()
	capped.Answer()
	a.Leave()
	require.False(t, granted(b))
	capped.Leave()
	require.True(t, granted(b))
}

func TestFewerSlotsGiveNoneUntilAsManyAreBack(t *testing.T) {
	l := line.New(3)
	join := joining(l)
	a, b, c, d := join(0), join(0), join(0), join(0)
	l.Resize(1)
	a.Leave()
	b.Leave()
	require.False(t, granted(d), "one is taken, of one")
	c.Leave()
	require.True(t, granted(d))
	e := join(0)
	require.False(t, granted(e))
	l.Resize(2)
	require.True(t, granted(e))
}

func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		l := line.New(slots)
		type member struct {
			*line.Place
			priority, order int
		}
		var in []member
		for i := range rapid.IntRange(1, 50).Draw(t, "steps") {
			if len(in) > 0 && rapid.Bool().Draw(t, "leave") {
				k := rapid.IntRange(0, len(in)-1).Draw(t, "who")
				in[k].Leave()
				in = slices.Delete(in, k, k+1)
			} else {
				priority := rapid.IntRange(0, 2).Draw(t, "priority")
				in = append(in, member{l.Join(priority, uint64(i), nil), priority, i})
			}
			_, used, waiting := l.Load()
			require.LessOrEqual(t, used, slots)
			require.Equal(t, min(slots, len(in)), used, "no slot lies idle while somebody waits, and none is taken by nobody")
			require.Equal(t, len(in)-used, waiting)
			var line []member
			for _, m := range in {
				require.Equal(t, granted(m.Place), m.Position() == 0)
				if !granted(m.Place) {
					line = append(line, m)
				}
			}
			slices.SortFunc(line, func(a, b member) int {
				if a.priority != b.priority {
					return b.priority - a.priority
				}
				return a.order - b.order
			})
			for i, m := range line {
				require.Equal(t, i+1, m.Position())
			}
		}
	})
}
