//go:build real

package real_test

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/real/kafka"
	"github.com/pointsman/pointsman/test/testkit"
)

// TestABrokerThatIsGone kills the only broker under five services, for longer than they wait for it, and starts it again. They neither
// flood their logs nor burn the processor meanwhile, and every Task ends once.
func TestABrokerThatIsGone(t *testing.T) {
	t.Parallel()
	c := kafka.Start(t, kafka.Options{})
	w := testkit.New(t, testkit.Options{Brokers: c.Addrs()})
	f := w.Fleet(testkit.FleetOptions{SessionTimeout: 20 * time.Second})
	f.Start(testkit.Services...)
	load := scenario.NewLoad(w, "gone", func() string { return f.Of("intake")[0].HTTP })
	load.Send(t, 40, 20)
	c.Kill(0)
	said := map[string]int{}
	burnt := map[string]time.Duration{}
	for _, s := range testkit.Services {
		said[s], burnt[s] = lines(f.Of(s)[0]), processor(t, f.Of(s)[0])
	}
	const away = 30 * time.Second
	time.Sleep(away)
	for _, s := range testkit.Services {
		p := f.Of(s)[0]
		n, took := lines(p)-said[s], processor(t, p)-burnt[s]
		t.Logf("%s: %d lines and %s of processor in %s", s, n, took, away)
		require.True(t, p.Running())
		require.Less(t, n, 100, "lines of %s:\n%s", s, p.Tail(n))
		require.Less(t, took, away/10, s)
	}
	c.Restart(0)
	judge(t, w, load.IDs())
	f.Stop()
}

// lines counts what a process has said.
func lines(p *testkit.Process) int { return strings.Count(p.Tail(math.MaxInt32), "\n") }

// processor is the time that a process has had of it, user and system.
func processor(t *testing.T, p *testkit.Process) (took time.Duration) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/stat")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ") // its name may have blanks
	for _, ticks := range strings.Fields(rest)[11:13] {
		n, err := strconv.Atoi(ticks)
		require.NoError(t, err)
		took += time.Duration(n) * 10 * time.Millisecond
	}
	return took
}
