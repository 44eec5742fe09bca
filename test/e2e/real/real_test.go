//go:build real

package real_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/replay"
	"github.com/pointsman/pointsman/services/pointsman/command"
	"github.com/pointsman/pointsman/test/e2e/scenario"
	"github.com/pointsman/pointsman/test/real/kafka"
	"github.com/pointsman/pointsman/test/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestOneBroker plays everything on one Kafka, each scenario with topics and groups of its own.
func TestOneBroker(t *testing.T) {
	c := kafka.Start(t, kafka.Options{})
	t.Run("main path", func(t *testing.T) {
		w := testkit.New(t, testkit.Options{Brokers: c.Addrs(), Prefix: "main."})
		f := w.Fleet(testkit.FleetOptions{})
		f.Start(testkit.Services...)
		api := testkit.NewAPI(t, f.Of("intake")[0].HTTP)
		_, ids := scenario.Trace(t, w, api)
		ids = append(ids, scenario.MainPath(t, w, api)...)
		judge(t, w, ids)
		f.Stop()
		replayed(t, c, "main.")
	})
	t.Run("bad input", func(t *testing.T) {
		w := testkit.New(t, testkit.Options{Brokers: c.Addrs(), Prefix: "bad."})
		_, _, stop := w.InProcess()
		judge(t, w, scenario.BadInput(t, w))
		stop()
	})
	t.Run("engines", func(t *testing.T) {
		w := testkit.New(t, testkit.Options{Brokers: c.Addrs(), Prefix: "engines."})
		st, _, stop := w.InProcess()
		ids := scenario.EngineDies(t, w, testkit.NewAPI(t, st.Intake.Addr().String()))
		judge(t, w, append(ids, scenario.Faults(t, w)...))
		stop()
	})
	t.Run("five processes killed and stopped", func(t *testing.T) {
		w := testkit.New(t, testkit.Options{Brokers: c.Addrs(), Prefix: "processes."})
		pace := scenario.Pace{Burst: 30, Rate: 40, Session: 3 * time.Second, Tries: 5}
		f := w.Fleet(testkit.FleetOptions{SessionTimeout: pace.Session})
		f.Start(testkit.Services...)
		f.Start("router", "executor", "profiler", "scaler")
		judge(t, w, scenario.Survive(t, w, f, pace))
		f.Stop()
		replayed(t, c, "processes.")
	})
}

// TestThreeBrokers kills the leader of a partition, three times over, while Tasks come in at a steady rate. Every record needs two of
// three replicas. In one of the rounds a service of each kind is killed with it.
func TestThreeBrokers(t *testing.T) {
	t.Parallel()
	c := kafka.Start(t, kafka.Options{Brokers: 3})
	w := testkit.New(t, testkit.Options{Brokers: c.Addrs()})
	f := w.Fleet(testkit.FleetOptions{SessionTimeout: 3 * time.Second})
	f.Start(testkit.Services...)
	f.Start("router", "executor")
	load := scenario.NewLoad(w, "leader", func() string { return f.Of("intake")[0].HTTP })
	for round, topic := range []string{event.TopicRequests, event.TopicAttemptState, event.TopicDecisions} {
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			load.Send(t, 100, 20)
		}()
		time.Sleep(time.Second)
		leader := c.Index(w.Leader(t, topic, 0))
		c.Kill(leader)
		if round == 1 {
			for _, service := range testkit.Services {
				p := f.Of(service)[0]
				p.Kill()
				p.Start()
			}
		}
		<-sent
		c.Restart(leader)
		time.Sleep(5 * time.Second) // the replica catches up: two of three are needed in the next round too
	}
	judge(t, w, load.IDs())
	for _, p := range f.Of("intake") {
		require.True(t, p.Running())
	}
	f.Stop()
}

// replayed makes every decision of a world again from what Kafka has kept of it: all come out the same, byte for byte, also those of
// routers that were killed over them.
func replayed(t *testing.T, c *kafka.Cluster, prefix string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := command.Main([]string{"replay", "--brokers", strings.Join(c.Addrs(), ","), "--prefix", prefix, "-o", "json"}, nil, &out, &errs)
	require.Zero(t, code, "%s\n%s", &out, &errs)
	var rep replay.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &rep))
	require.NotZero(t, rep.Decisions)
	require.Equal(t, rep.Decisions, rep.Identical)
	t.Logf("%d decisions replayed; %+v", rep.Decisions, rep.Gaps) // a router that is killed between the two may leave a decision without its input
}

func judge(t *testing.T, w *testkit.World, ids []string) {
	t.Helper()
	if !t.Failed() {
		t.Log(w.Judge(ids, 5*time.Minute))
	}
}
