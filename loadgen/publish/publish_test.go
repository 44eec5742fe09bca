package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/loadgen/workload"
	"github.com/pointsman/pointsman/pkg/query"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cluster(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "requests"))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func client(t *testing.T, brokers []string) *kgo.Client {
	t.Helper()
	c, err := NewClient(brokers, "requests", false)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// burst is a workload squeezed into a tenth of a second.
func burst(t *testing.T) []workload.Arrival {
	t.Helper()
	arrivals, err := workload.Generate(workload.Options{Seed: 1})
	require.NoError(t, err)
	for i := range arrivals {
		arrivals[i].At /= 420
	}
	return arrivals
}

func TestRunPublishesEveryTask(t *testing.T) {
	c := cluster(t)
	arrivals := burst(t)
	progressed := int64(0)
	report, err := Run(t.Context(), client(t, c.ListenAddrs()), slices.Values(arrivals), func(sent int64) { progressed = sent })
	require.NoError(t, err)
	require.EqualValues(t, len(arrivals), report.Sent)
	require.EqualValues(t, len(arrivals), progressed)
	require.Zero(t, report.Failed)
	require.Zero(t, report.Unanswered)
	require.EqualValues(t, len(arrivals), report.Lateness.Samples)
	require.EqualValues(t, len(arrivals), report.Acknowledged.Samples)
	require.GreaterOrEqual(t, report.Acknowledged.P50, report.Lateness.P50)

	consumer, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics("requests"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer consumer.Close()
	got := map[string]query.Task{}
	sessions := map[string]map[int32]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for len(got) < len(arrivals) {
		fetches := consumer.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			var task query.Task
			require.NoError(t, json.Unmarshal(r.Value, &task))
			require.NotContains(t, got, task.ID)
			got[task.ID] = task
			require.Empty(t, r.Headers, "bare JSON")
			if session := task.SessionID(); session != "" {
				require.Equal(t, session, string(r.Key))
				if sessions[session] == nil {
					sessions[session] = map[int32]bool{}
				}
				sessions[session][r.Partition] = true
			} else {
				require.Equal(t, task.ID, string(r.Key))
			}
		})
	}
	for _, a := range arrivals {
		require.Empty(t, cmp.Diff(a.Task, got[a.Task.ID]))
	}
	require.Len(t, sessions, 7)
	for session, partitions := range sessions {
		require.Len(t, partitions, 1, "session %s is in one partition, in order", session)
	}
}

func TestRunReportsFailedRecords(t *testing.T) {
	c := cluster(t)
	c.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		produce := request.(*kmsg.ProduceRequest)
		response := produce.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range produce.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = partition.Partition, kerr.MessageTooLarge.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			response.Topics = append(response.Topics, rt)
		}
		return response, nil, true
	})
	arrivals := burst(t)[:20]
	report, err := Run(t.Context(), client(t, c.ListenAddrs()), slices.Values(arrivals), nil)
	require.ErrorIs(t, err, kerr.MessageTooLarge)
	require.EqualValues(t, 20, report.Sent)
	require.EqualValues(t, 20, report.Failed)
	require.Zero(t, report.Acknowledged.Samples)
	require.Contains(t, report.String(), "failed 20")
}

func TestRunInterruptedDeliversWhatItSent(t *testing.T) {
	c := cluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	arrivals := burst(t)[:5]
	arrivals[4].At = time.Hour
	report, err := Run(ctx, client(t, c.ListenAddrs()), slices.Values(arrivals), func(sent int64) {
		if sent == 4 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 4, report.Sent)
	require.EqualValues(t, 4, report.Acknowledged.Samples)
}

func TestRunWithoutABroker(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, err = Run(t.Context(), client(t, []string{address}), slices.Values(at(0)), nil)
	require.ErrorContains(t, err, "reaching the broker")
}

func TestRefuseRemote(t *testing.T) {
	for _, address := range []string{"127.0.0.1:9092", "[::1]:9092", "127.8.8.8:1", "[::ffff:127.0.0.1]:9092"} {
		require.NoError(t, refuseRemote(address), address)
	}
	for _, address := range []string{"192.0.2.1:9092", "[2001:db8::1]:9092", "0.0.0.0:9092", "nonsense"} {
		require.Error(t, refuseRemote(address), address)
	}
}

func TestRemoteBrokersNeedTheFlag(t *testing.T) {
	_, err := Run(t.Context(), client(t, []string{"192.0.2.1:9092"}), slices.Values(at(0)), nil) // a documentation address
	require.ErrorContains(t, err, "--remote")
}

func TestRecordIsBareJSON(t *testing.T) {
	r, err := Record(workload.Arrival{Task: query.Task{ID: "a", SQL: "SELECT 1 < 2", Tenant: "t"}})
	require.NoError(t, err)
	require.Equal(t, "a", string(r.Key))
	require.True(t, bytes.Contains(r.Value, []byte(`"sql":"SELECT 1 < 2"`)), "%s", r.Value)
}

func TestReportCountsBeyondTheHistogram(t *testing.T) {
	tally := newTally()
	tally.sending(-time.Second)
	tally.sending(time.Hour)
	tally.acknowledged(time.Hour, nil)
	r := tally.report(2 * time.Second)
	require.EqualValues(t, 2, r.Lateness.Samples)
	require.InEpsilon(t, longest.Milliseconds(), r.Lateness.Max, 0.001)
	require.EqualValues(t, 1, r.Unanswered)
	require.InEpsilon(t, 1.0, r.Rate, 0.001)
	require.Contains(t, Report{}.String(), "no samples")
}
