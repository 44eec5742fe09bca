package record_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/services/pointsman/record"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

// policyText is a policy without faults.
const policyText = "engines: {a: {kind: clickhouse}}\nrules:\n  - {name: default, route: auto}\n"

// write puts an event on a topic, as of a time.
func write(t *testing.T, b *streamtest.Broker, topic, key string, typ event.Type, data string, at time.Time) {
	rec, err := b.Config.Encode(stream.Message{Topic: topic, Key: key, Type: typ, ID: key, Data: []byte(data), Fresh: true})
	require.NoError(t, err)
	rec.Timestamp = at
	require.NoError(t, b.Client(t).ProduceSync(t.Context(), rec).FirstErr())
}

func TestWithoutTopicsItSaysSo(t *testing.T) {
	b := streamtest.Start(t)
	r := record.OfKafka(b.Config)
	_, err := r.Policies(t.Context())
	require.ErrorContains(t, err, "there is no topic [policies]")
	err = r.Read(t.Context(), time.Time{}, time.Time{}, record.Reader{Input: func(route.Input) {}})
	require.ErrorContains(t, err, "there is no topic [inputs]")
	require.NoError(t, r.Close(t.Context()))
}

func TestABrokerThatIsAwayIsNotWaitedForForEver(t *testing.T) {
	cfg := stream.DefaultConfig()
	cfg.Brokers = []string{"127.0.0.1:1"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := record.OfKafka(cfg).Policies(ctx)
	require.Error(t, err)
	require.NoError(t, ctx.Err(), "it gave up by itself: %v", err)
}

// TestWhatCantBeReadIsSaid: the record is on topics that anyone may have written to, and by versions of any age.
func TestWhatCantBeReadIsSaid(t *testing.T) {
	b := streamtest.Start(t)
	for _, topic := range []string{event.TopicDecisions, event.TopicInputs, event.TopicPolicies} {
		b.Topic(t, topic, 1, nil)
	}
	now := time.Now()
	write(t, b, event.TopicPolicies, "x", event.PolicyLoaded, `{"hash":"another than its text's","text":"engines: {}","loadedAt":"2026-01-01T00:00:00Z"}`, now)
	write(t, b, event.TopicPolicies, "y", event.PolicyLoaded, `not JSON`, now)
	require.NoError(t, b.Client(t).ProduceSync(t.Context(), &kgo.Record{Topic: event.TopicPolicies, Key: []byte("gone")}).FirstErr())
	r := record.OfKafka(b.Config)
	policies, err := r.Policies(t.Context())
	require.NoError(t, err)
	require.Empty(t, policies, "a policy whose text is not that of its hash would decide something else")

	write(t, b, event.TopicDecisions, "t", event.DecisionRouted, `{"decisionId":"t/1","taskId":"t","attempt":1,"kind":"route","decidedAt":"2026-11-30T09:00:00Z","deadline":"2026-11-30T09:01:00Z","engine":"e","cluster":"c"}`, now)
	write(t, b, event.TopicDecisions, "t", event.DecisionRouted, `{"decidedAt":7}`, now)
	write(t, b, event.TopicInputs, "t", event.InputRecorded, `{"task":{"id":"t"},"attempt":1,"fingerprint":"","shape":{},"history":{"asked":false},"now":"2026-11-30T09:00:00Z","seed":1,"policyHash":"h"}`, now)
	write(t, b, event.TopicInputs, "u", event.InputRecorded, `{"task":{"id":"u"},"attempt":1,"fingerprint":"","shape":{},"history":{"asked":false},"now":"2026-11-30T09:00:00Z","seed":1,"policyHash":"h"}`, now)
	write(t, b, event.TopicInputs, "t", event.InputRecorded, `[]`, now)
	write(t, b, event.TopicInputs, "old", event.InputRecorded, `{"task":{"id":"old"},"now":"2026-11-30T09:00:00Z"}`, now.Add(-time.Hour))

	var decisions, inputs []string
	bad, last := 0, int64(0)
	reader := record.Reader{
		Decision:   func(_ []byte, d event.RouteDecision) { decisions = append(decisions, d.DecisionID) },
		Input:      func(in route.Input) { inputs = append(inputs, query.AttemptID(in.Task.ID, in.Attempt)) },
		Unreadable: func(string, int32, int64, error) { bad++ },
		Progress:   func(done, total int64) { last = total - done },
	}
	require.NoError(t, r.Read(t.Context(), now.Add(-10*time.Minute), now.Add(time.Minute), reader))
	require.Equal(t, []string{"t/1"}, decisions)
	require.Equal(t, []string{"t/1", "u/1"}, inputs[:2])
	require.Equal(t, 2, bad)
	require.Zero(t, last, "progress ends at the end")

	decisions, inputs, reader.Key = nil, nil, "u"
	require.NoError(t, r.Read(t.Context(), time.Time{}, time.Time{}, reader))
	require.Empty(t, decisions)
	require.Equal(t, []string{"u/1"}, inputs)
}

func TestAPolicyIsFoundByItsHash(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, event.TopicPolicies, 1, nil)
	r := record.OfKafka(b.Config)
	none, err := r.Policies(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
	p, err := policy.Load("test", []byte(policyText))
	require.NoError(t, err)
	for _, hash := range []string{"another", p.Hash, p.Hash} { // a router that starts again writes it again
		text, err := event.Marshal(event.PolicyText{Hash: hash, Text: policyText})
		require.NoError(t, err)
		write(t, b, event.TopicPolicies, hash, event.PolicyLoaded, string(text), time.Now())
	}
	found, err := r.Policies(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, policyText, found[p.Hash].Source)
}

// However far the sizes of their records lie apart, decisions and inputs are read side by side, so that a million of them need no
// more memory than some thousands.
func TestDecisionsAndInputsAreReadSideBySide(t *testing.T) {
	const n = 20_000
	b := streamtest.Start(t)
	b.Topic(t, event.TopicDecisions, 2, nil)
	b.Topic(t, event.TopicInputs, 2, nil)
	cl := b.Client(t, kgo.ProducerLinger(5*time.Millisecond))
	for i := range n {
		for topic, m := range map[string]stream.Message{
			event.TopicDecisions: {Type: event.DecisionRouted, Data: []byte(`{"decisionId":"x","taskId":"x","attempt":1,"kind":"route","reasons":[{"code":"` + strings.Repeat("x", 2000) + `"}]}`)},
			event.TopicInputs:    {Type: event.InputRecorded, Data: []byte(`{"attempt":1}`)},
		} {
			m.Topic, m.Key, m.ID, m.Fresh = topic, "k", "x", true
			rec, err := b.Config.Encode(m)
			require.NoError(t, err)
			rec.Partition = int32(i % 2)
			cl.Produce(t.Context(), rec, nil)
		}
	}
	require.NoError(t, cl.Flush(t.Context()))
	decisions, inputs, apart := 0, 0, 0
	progress := int64(0)
	note := func() { apart = max(apart, decisions-inputs, inputs-decisions) }
	require.NoError(t, record.OfKafka(b.Config).Read(t.Context(), time.Time{}, time.Time{}, record.Reader{
		Decision: func([]byte, event.RouteDecision) { decisions++; note() },
		Input:    func(route.Input) { inputs++; note() },
		Progress: func(done, total int64) { progress = done; require.EqualValues(t, 2*n, total) },
	}))
	require.Equal(t, n, decisions)
	require.Equal(t, n, inputs)
	require.EqualValues(t, 2*n, progress)
	require.LessOrEqual(t, apart, n/5)
}
