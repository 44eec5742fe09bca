package topicadmin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func specs(t *testing.T) []topicadmin.Spec {
	s, err := topicadmin.Specs()
	require.NoError(t, err)
	return s
}

func TestSpecsAreTheElevenTopics(t *testing.T) {
	var names []string
	for _, s := range specs(t) {
		names = append(names, s.Name)
	}
	require.ElementsMatch(t, []string{
		event.TopicRequests, event.TopicDecisions, event.TopicAttempts, event.TopicOutcomes,
		event.TopicAttemptState, event.TopicBudgetState, event.TopicSlots, event.TopicSignals, event.TopicDeadLetter, event.TopicInputs,
		event.TopicPolicies,
	}, names)
	limit := topicadmin.MaxBytes(specs(t))
	require.Equal(t, 2<<20, limit(event.TopicRequests))
	require.Zero(t, limit("unknown"))
	for _, s := range specs(t) {
		if s.Name != event.TopicDeadLetter {
			require.Less(t, limit(s.Name), limit(event.TopicDeadLetter), "a dead letter is larger than what it was")
		}
	}
}

func TestApplyDiffAndDrift(t *testing.T) {
	b := streamtest.Start(t)
	b.Config.Prefix = "dev."
	all := specs(t)
	diff := func() topicadmin.Plan {
		p, err := topicadmin.Diff(t.Context(), b.Config, b.Deps, all, topicadmin.Options{})
		require.NoError(t, err)
		return p
	}
	require.Len(t, diff(), 11)
	require.Contains(t, diff().String(), "+ dev.decisions: create with 6 partitions")
	require.False(t, diff().Clean())

	plan, err := topicadmin.Apply(t.Context(), b.Config, b.Deps, all, topicadmin.Options{})
	require.NoError(t, err)
	require.Len(t, plan, 11)
	require.Empty(t, diff())
	require.Equal(t, "topics are as described\n", diff().String())
	info := b.TopicInfo("dev.attempt-state")
	require.Equal(t, "LogAppendTime", *info.Configs["message.timestamp.type"])
	require.Equal(t, "delete", *info.Configs["cleanup.policy"])
	require.Equal(t, "1209600000", *info.Configs["retention.ms"])
	require.Len(t, b.PartitionInfos("dev.attempt-state"), 6)
	require.Equal(t, "compact", *b.TopicInfo("dev.signals").Configs["cleanup.policy"])

	again, err := topicadmin.Apply(t.Context(), b.Config, b.Deps, all, topicadmin.Options{})
	require.NoError(t, err)
	require.Empty(t, again)

	// somebody compacts the ledger by hand, and sets what we say nothing about
	require.NoError(t, b.DeleteTopic("dev.attempt-state"))
	require.NoError(t, b.CreateTopic("dev.attempt-state", 6, map[string]string{"cleanup.policy": "compact", "segment.ms": "1000"}))
	drift := diff()
	require.False(t, drift.Clean())
	require.Contains(t, drift.String(), "~ dev.attempt-state: cleanup.policy is compact, will be delete")
	require.Contains(t, drift.String(), "  dev.attempt-state: segment.ms is set to 1000 by somebody else, and stays")
	_, err = topicadmin.Apply(t.Context(), b.Config, b.Deps, all, topicadmin.Options{})
	require.NoError(t, err)
	require.True(t, diff().Clean())
	require.Len(t, diff(), 1, "what we say nothing about stays")

	// a partition count is nothing to change in passing, and stops everything else as well
	require.NoError(t, b.DeleteTopic("dev.decisions"))
	require.NoError(t, b.DeleteTopic("dev.signals"))
	require.NoError(t, b.CreateTopic("dev.decisions", 3, nil))
	_, err = topicadmin.Apply(t.Context(), b.Config, b.Deps, all, topicadmin.Options{})
	require.ErrorIs(t, err, topicadmin.ErrConflict)
	require.ErrorContains(t, err, "dev.decisions: partitions is 3, should be 6")
	require.Nil(t, b.TopicInfo("dev.signals"))
}

func TestApplyTwiceAtOnce(t *testing.T) {
	b := streamtest.Start(t)
	errs := make(chan error, 4)
	for range 4 {
		go func() {
			_, err := topicadmin.Apply(t.Context(), b.Config, b.Deps, specs(t), topicadmin.Options{MinInSync: 1})
			errs <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-errs)
	}
}

func TestLoadSaysEverythingThatIsWrong(t *testing.T) {
	good := "name: a\nkey: k\npartitions: 2\ncleanup: delete\nretention: 1h\nmaxMessageBytes: 1 MiB\ntimestamp: create\nowner: x\n"
	load := func(files map[string]string) error {
		fsys := fstest.MapFS{}
		for name, text := range files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		_, err := topicadmin.Load(fsys)
		return err
	}
	require.NoError(t, load(map[string]string{"a.yaml": good, "asyncapi.yaml": "anything: goes"}))
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":  {good + "colour: red\n", "colour"},
		"wrong name":   {"name: b\n" + good[8:], `describes the topic "b"`},
		"no policy":    {"name: a\n", "cleanup"},
		"no retention": {"name: a\nkey: k\npartitions: 2\ncleanup: delete\nmaxMessageBytes: 1 MiB\ntimestamp: create\nowner: x\n", "retention"},
		"bad event":    {good + "events: [foo]\n", "foo"},
		"no peer":      {good + "copartitioned: [zz]\n", "zz"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, load(map[string]string{"a.yaml": c.text}), c.want)
		})
	}
	err := load(map[string]string{
		"a.yaml": good + "copartitioned: [b]\n",
		"b.yaml": "name: b\nkey: k\npartitions: 3\ncleanup: delete\nretention: 1h\nmaxMessageBytes: 1 MiB\ntimestamp: create\nowner: x\n",
	})
	require.ErrorContains(t, err, "2 partitions, and 3 in b")
}

func TestTail(t *testing.T) {
	b := streamtest.Start(t)
	b.Config.Prefix = "dev."
	b.Topic(t, "requests", 3, nil)
	cl := b.Client(t)
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	put := func(i int, key, value []byte) {
		rec := &kgo.Record{
			Topic: "dev.requests", Partition: int32(i % 3), Key: key, Value: value, Timestamp: base.Add(time.Duration(i) * time.Second),
			Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("pointsman.query.requested.v1")}},
		}
		require.NoError(t, cl.ProduceSync(t.Context(), rec).FirstErr())
	}
	put(0, []byte("a"), []byte(`{"n":9007199254740993}`))
	put(1, nil, []byte("\x1b[31mred"))
	put(2, []byte("c"), nil)
	put(3, []byte("a"), []byte{0xff})
	show := func(opts topicadmin.TailOptions) string {
		opts.Topics = []string{"requests"}
		var out bytes.Buffer
		require.NoError(t, topicadmin.Tail(t.Context(), b.Config, b.Deps, opts, &out))
		return out.String()
	}
	const typ = "pointsman.query.requested.v1"
	require.Equal(t, "2026-01-02T03:04:05.000Z requests[0]@0 a "+typ+` {"n":9007199254740993}`+"\n"+
		"2026-01-02T03:04:06.000Z requests[1]@0 - "+typ+" ?[31mred\n"+
		"2026-01-02T03:04:07.000Z requests[2]@0 c "+typ+" (null)\n"+
		"2026-01-02T03:04:08.000Z requests[0]@1 a "+typ+" ?\n", show(topicadmin.TailOptions{}))
	require.Equal(t, 1, strings.Count(show(topicadmin.TailOptions{Limit: 1}), "\n"))
	require.Equal(t, 2, strings.Count(show(topicadmin.TailOptions{Key: "a"}), "\n"))
	require.Equal(t, 2, strings.Count(show(topicadmin.TailOptions{Since: base.Add(2 * time.Second)}), "\n"))
	require.Empty(t, show(topicadmin.TailOptions{Since: time.Now().Add(time.Hour)}))

	dec := json.NewDecoder(bytes.NewReader([]byte(show(topicadmin.TailOptions{JSON: true}))))
	var lines []map[string]any
	for dec.More() {
		var m map[string]any
		require.NoError(t, dec.Decode(&m))
		lines = append(lines, m)
	}
	require.Len(t, lines, 4)
	require.Equal(t, "requests", lines[0]["topic"])
	require.Equal(t, "\x1b[31mred", lines[1]["text"])
	require.NotContains(t, lines[2], "value")
	require.Equal(t, "/w==", lines[3]["base64"])
	require.Contains(t, show(topicadmin.TailOptions{JSON: true}), `"value":{"n":9007199254740993}`)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- topicadmin.Tail(ctx, b.Config, b.Deps, topicadmin.TailOptions{Topics: []string{"requests"}, Follow: true, Since: base.Add(3 * time.Second), Limit: 3}, &out)
	}()
	put(4, []byte("d"), []byte("{}"))
	put(5, []byte("e"), []byte("{}"))
	require.NoError(t, <-done)
	require.NoError(t, ctx.Err(), "the limit ends it, not the time")
	require.Equal(t, 3, bytes.Count(out.Bytes(), []byte("\n")), fmt.Sprint(out.String()))
}
