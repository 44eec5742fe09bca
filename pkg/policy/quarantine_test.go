package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/signal"
)

// P10: after a failed check a cluster is let in again by good samples in a row, and by nothing else: not by one of them, not by
// silence, not by the same one told twice.
func TestQuarantine(t *testing.T) {
	p := loadText(t, `
engines: {interactive: {kind: dremio, readmit_samples: 3}, batch: {kind: spark}}
rules: [{name: default, route: auto}]
`)
	require.Empty(t, p.Warnings, "nobody has to test it")
	pool, _ := p.Pool("interactive")
	book := policy.NewLatchBook(p)
	on := func() bool { return book.States()[pool.QuarantineLatch()].On }
	check := func(second, healthy float64) {
		book.Observe(seen(at(second), map[signal.Name]float64{signal.Healthy: healthy}))
	}
	check(0, 1)
	require.False(t, on())
	check(1, 0)
	require.True(t, on(), "one failed check is enough")
	check(2, 1)
	check(3, 1)
	check(3, 1)
	require.True(t, on())
	check(4, 0)
	check(5, 1)
	check(6, 1)
	require.True(t, on(), "the count begins anew")
	check(600, 1)
	require.False(t, on())

	check(700, 0)
	book.Observe(seen(at(900), map[signal.Name]float64{signal.Running: 0}))
	require.True(t, on(), "no check is no good check")
}

func TestQuarantineIsForPoolsThatAreUp(t *testing.T) {
	_, err := policy.Load("p.yaml", []byte(`
engines: {batch: {kind: spark, sleeps_at_zero: true, readmit_samples: 3}}
latches: {batch_quarantined: {watch: batch_queued, enter_gte: 2, leave_lt: 1}}
rules: [{name: default, route: auto}]
`))
	require.ErrorContains(t, err, "always up")
	require.ErrorContains(t, err, `"batch_quarantined" is taken`)
}
