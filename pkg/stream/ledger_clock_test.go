package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/ledger"
)

// A claim's age goes by the clock of the broker that led when it was appended. If another leads when the lease is, the two may differ by
// anything, so the guard runs from the lease.
func TestGuardRunsFromTheLeaseOfANewLeader(t *testing.T) {
	claimed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	leased := claimed.Add(time.Hour) // or a second, by a clock that is almost an hour behind
	guard := ledger.DefaultGuard()
	for name, c := range map[string]struct {
		leaders []int32 // of the lease before, the claim, the lease
		want    time.Time
	}{
		"one leader":                {[]int32{4, 4, 4}, guard.Ends(claimed)},
		"changed before the claim":  {[]int32{3, 4, 4}, guard.Ends(claimed)},
		"changed before the lease":  {[]int32{4, 4, 5}, guard.Ends(leased)},
		"changed twice":             {[]int32{3, 4, 5}, guard.Ends(leased)},
		"the first leader there is": {[]int32{0, 0, 0}, guard.Ends(claimed)},
	} {
		t.Run(name, func(t *testing.T) {
			l := &Ledger{lc: LedgerConfig{Owner: "B", Guard: guard}, fold: ledger.NewFold(ledger.Anchor{})}
			for i, r := range []ledger.Record{
				{Kind: ledger.KindLease, Epoch: 1, Owner: "A", Seq: 1, Key: ledger.LeaseKey(0)},
				{Kind: ledger.KindClaim, Epoch: 1, Owner: "A", Seq: 2, Key: "t/1", TaskID: "t", Attempt: 1, Deadline: leased.Add(time.Hour)},
				{Kind: ledger.KindLease, Epoch: 2, Owner: "B", Seq: 1, Key: ledger.LeaseKey(0)},
			} {
				value, err := r.Encode()
				require.NoError(t, err)
				at := []time.Time{claimed, claimed, leased}[i]
				l.apply(&kgo.Record{Offset: int64(i), Timestamp: at, LeaderEpoch: c.leaders[i], Value: value})
			}
			require.Equal(t, int64(2), l.fold.Epoch())
			l.brokerTime, l.leaseAt, l.leaseLed = true, leased, l.ledFrom
			d := l.Driver("t/1", "t")
			require.Equal(t, ledger.ActionLookUp, d.Action())
			require.Equal(t, c.want, d.GuardEnds())
		})
	}
}
