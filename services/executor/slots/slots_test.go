package slots_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/services/executor/slots"
)

var began = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

const cluster = "c"

func want(id string) slots.Want {
	return slots.Want{Attempt: id, Cluster: cluster, Queue: "q", Tenant: "t"}
}

func of(owner string, epoch int64, key string) ledger.Record {
	return ledger.Record{Owner: owner, Epoch: epoch, Key: key, Deadline: began.Add(time.Minute)}
}

func table(caps slots.Caps) *slots.Table {
	t := slots.New(caps)
	t.Ready()
	return t
}

func capped(n int) slots.Caps { return slots.Caps{Cluster: map[string]int{cluster: n}} }

func TestNothingIsGrantedBeforeWhatOthersHoldIsKnown(t *testing.T) {
	s := slots.New(capped(5))
	require.False(t, s.Take(want("a/1")))
	s.Ready()
	require.True(t, s.Take(want("a/1")))
	require.True(t, s.Take(want("a/1")), "it has it already")
	require.Equal(t, 1, s.Held(cluster))
}

func TestWhatOthersClaimCounts(t *testing.T) {
	s := table(capped(2))
	s.Claimed(0, of("other", 1, "x/1"), want("x/1"))
	s.Claimed(0, of("other", 1, "x/1"), want("x/1"))
	require.Equal(t, 1, s.Held(cluster), "a claim that is repeated is one lease")
	require.True(t, s.Take(want("a/1")))
	require.False(t, s.Take(want("b/1")))
	s.Ended(0, of("other", 1, "x/1"))
	require.True(t, s.Take(want("b/1")))
	require.False(t, s.Take(want("c/1")))
}

func TestOurOwnEndFreesAtOnce(t *testing.T) {
	s := table(capped(1))
	require.True(t, s.Take(want("a/1")))
	s.Free("a/1", true)
	require.True(t, s.Take(want("b/1")), "before its end is read")
	s.Claimed(0, of("me", 1, "a/1"), want("a/1"))
	require.Equal(t, 1, s.Held(cluster), "its claim is read late, and counts for nothing")
	s.Ended(0, of("me", 1, "a/1"))
	s.Free("b/1", false)
	require.Zero(t, s.Held(cluster), "what never claimed leaves nothing behind")
}

// What is let go may still run: its claim holds the slot until somebody ends it.
func TestWhatIsLetGoStillCounts(t *testing.T) {
	s := table(capped(1))
	require.True(t, s.Take(want("a/1")))
	s.Claimed(0, of("me", 1, "a/1"), want("a/1"))
	s.Free("a/1", false)
	require.False(t, s.Take(want("b/1")))
	s.Leased(0, of("next", 2, "lease/0"))
	s.Ended(0, of("me", 1, "a/1"))
	require.False(t, s.Take(want("b/1")), "what its old owner writes behind the new lease is void")
	s.Ended(0, of("next", 2, "a/1"))
	require.True(t, s.Take(want("b/1")))
}

// TestALiveLongQueryKeepsItsSlot: nothing but its end, or its Task's deadline, takes a slot away.
func TestALiveLongQueryKeepsItsSlot(t *testing.T) {
	s := table(capped(1))
	s.Claimed(0, of("other", 1, "x/1"), want("x/1"))
	require.Zero(t, s.Expire(began.Add(time.Minute), time.Second))
	require.False(t, s.Take(want("a/1")))
	require.Equal(t, 1, s.Expire(began.Add(time.Minute+time.Second), time.Second), "nobody has ended it, and nothing runs past its deadline")
	require.True(t, s.Take(want("a/1")))
	require.Zero(t, s.Expire(began.Add(time.Hour), time.Second), "what runs here is ended here")
	require.Equal(t, 1, s.Held(cluster))
}

// A process that starts with a lower cap reads the same ledgers, and admits nothing until fewer hold a slot.
func TestALowerCapAdmitsNothingUntilBelowIt(t *testing.T) {
	s := table(capped(2))
	for i := range 4 {
		s.Claimed(0, of("other", 1, fmt.Sprintf("x%d/1", i)), want(fmt.Sprintf("x%d/1", i)))
	}
	for i := range 3 {
		require.False(t, s.Take(want("a/1")), i)
		s.Ended(0, of("other", 1, fmt.Sprintf("x%d/1", i)))
	}
	require.True(t, s.Take(want("a/1")))
	require.False(t, s.Take(want("b/1")))
}

func TestQueuesAndTenants(t *testing.T) {
	s := table(slots.Caps{Queue: map[slots.Queue]int{{Cluster: cluster, Name: "small"}: 1}, Tenant: map[string]int{"vip": 3, "free": 0}, AnyTenant: 1})
	take := func(id, queue, tenant string) bool {
		return s.Take(slots.Want{Attempt: id, Cluster: cluster, Queue: queue, Tenant: tenant})
	}
	require.True(t, take("a", "big", "one"))
	require.False(t, take("b", "big", "one"), "any tenant has one")
	require.True(t, take("c", "small", "vip"))
	require.False(t, take("d", "small", "vip"), "the queue has one")
	require.True(t, take("e", "big", "vip"))
	require.True(t, take("f", "big", "vip"))
	require.False(t, take("g", "big", "vip"), "its own cap")
	for i := range 9 {
		require.True(t, take(fmt.Sprint("free", i), "big", "free"), "0 is no cap")
	}
	s.Free("a", false)
	require.True(t, take("b", "big", "one"))
}

// TestShares: with two executors known, each has at most half of the free slots on its way.
func TestShares(t *testing.T) {
	s := table(capped(10))
	s.Leased(0, of("me", 1, "lease/0"))
	s.Leased(1, of("other", 1, "lease/1"))
	n := 0
	for s.Take(want(fmt.Sprint(n, "/1"))) {
		n++
	}
	require.Equal(t, 5, n)
	for i := range n {
		s.Claimed(0, of("me", 1, fmt.Sprint(i, "/1")), want(fmt.Sprint(i, "/1")))
	}
	for s.Take(want(fmt.Sprint(n, "/1"))) {
		n++
	}
	require.Equal(t, 7, n, "half of the five that are left, and so on")
}

// executors is any number of tables over one set of ledgers that each reads with a lag of its own.
type executors struct {
	tables []*slots.Table
	log    []func(*slots.Table)
	read   []int
	held   map[string]int // attempt to the executor that has it
}

// Whatever the interleaving, n executors that are up to date exceed a cap by n-1 at most; with lagging ones it is n-1 for each
// time that all share out what they take for free, so never more than what one has on the way, times the others.
func TestOvershootIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(1, 4).Draw(t, "executors"), rapid.IntRange(1, 12).Draw(t, "cap")
		lag := rapid.Bool().Draw(t, "lag")
		e := executors{held: map[string]int{}, read: make([]int, n)}
		for range n {
			e.tables = append(e.tables, table(capped(size)))
		}
		for i := range n {
			e.write(func(t *slots.Table) { t.Leased(int32(i), of(fmt.Sprint(i), 1, "lease")) })
		}
		e.catchUp(lag, t)
		next := 0
		claims := map[string]bool{}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "who")
			switch rapid.IntRange(0, 2).Draw(t, "does") {
			case 0: // takes a slot, and its claim is in the log some time later
				id := fmt.Sprint(next, "/1")
				next++
				if e.tables[i].Take(want(id)) {
					e.held[id] = i
				}
			case 1:
				for id, owner := range e.held {
					if owner == i && !claims[id] {
						claims[id] = true
						e.write(func(t *slots.Table) { t.Claimed(int32(owner), of(fmt.Sprint(owner), 1, id), want(id)) })
					}
				}
			case 2:
				for id, owner := range e.held {
					if owner == i && claims[id] {
						e.tables[i].Free(id, true)
						delete(e.held, id)
						e.write(func(t *slots.Table) { t.Ended(int32(owner), of(fmt.Sprint(owner), 1, id)) })
						break
					}
				}
			}
			e.catchUp(lag, t)
			if !lag {
				require.LessOrEqual(t, len(e.held), size+n-1)
			} else {
				require.LessOrEqual(t, len(e.held), size*n)
			}
		}
		e.catchUp(false, t)
		for id := range e.held {
			if !claims[id] {
				t.Skip("not all are claimed")
			}
		}
		for _, table := range e.tables {
			require.Equal(t, len(e.held), table.Held(cluster), "all come to the same count")
		}
	})
}

func (e *executors) write(f func(*slots.Table)) { e.log = append(e.log, f) }

func (e *executors) catchUp(lag bool, t *rapid.T) {
	for i, table := range e.tables {
		to := len(e.log)
		if lag {
			to = rapid.IntRange(e.read[i], to).Draw(t, "read")
		}
		for ; e.read[i] < to; e.read[i]++ {
			e.log[e.read[i]](table)
		}
	}
}
