package topicadmin_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/stream/streamtest"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
)

func TestDeadLettersGoBackAFewTimes(t *testing.T) {
	b := streamtest.Start(t)
	b.Config.Prefix = "dev."
	b.Topic(t, "requests", 2, nil)
	b.Topic(t, "deadletter", 2, nil)
	p, err := stream.NewProducer(b.Config, b.Deps, "test")
	require.NoError(t, err)
	defer p.Close()
	bury := func(r *kgo.Record, class stream.FaultClass) {
		require.NoError(t, p.DeadLetter(t.Context(), stream.DeadLetter{Record: r, Stage: "router", Class: class, Err: errors.New("no \x1b good")}))
	}
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	bury(&kgo.Record{Topic: "dev.requests", Offset: 7, Timestamp: first, Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("1")}}}, stream.FaultNotJSON)
	bury(&kgo.Record{Topic: "dev.requests", Value: []byte(strings.Repeat("x", 2_000_000))}, stream.FaultSchema)

	letters, err := topicadmin.Letters(t.Context(), b.Config, b.Deps, topicadmin.LetterFilter{Class: "not_json"})
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Contains(t, letters[0].String(), "requests[0]@7 router not_json (attempt 1): no ? good")

	var out strings.Builder
	done, err := topicadmin.Requeue(t.Context(), b.Config, b.Deps, topicadmin.LetterFilter{}, topicadmin.RequeueOptions{}, &out)
	require.NoError(t, err)
	require.Equal(t, topicadmin.Requeued{Sent: 1, Skipped: 1}, done)
	require.Contains(t, out.String(), "would send")
	require.Contains(t, out.String(), "left, it is not whole")
	require.Empty(t, b.Records(t, "requests"))

	// it goes back, fails again, and after the third time it stays
	for n := 1; n <= 2; n++ {
		done, err = topicadmin.Requeue(t.Context(), b.Config, b.Deps, topicadmin.LetterFilter{Class: "not_json", Since: time.Now().Add(-time.Minute)}, topicadmin.RequeueOptions{Apply: true}, &out)
		require.NoError(t, err)
		require.Equal(t, topicadmin.Requeued{Sent: 1, Skipped: n - 1}, done, "what went back already stays")
		back := b.Records(t, "requests")
		last := back[len(back)-1]
		require.Equal(t, "v", string(last.Value))
		require.Equal(t, "k", string(last.Key))
		require.Equal(t, "1", string(last.Headers[0].Value))
		require.Len(t, last.Headers, 3, "its own, and how often and since when it was dead")
		bury(last, stream.FaultNotJSON)
	}
	out.Reset()
	letters, err = topicadmin.Letters(t.Context(), b.Config, b.Deps, topicadmin.LetterFilter{Class: "not_json"})
	require.NoError(t, err)
	attempts := letters[len(letters)-1].Attempts
	require.Equal(t, 3, attempts)
	_, err = topicadmin.Requeue(t.Context(), b.Config, b.Deps, topicadmin.LetterFilter{Class: "not_json"}, topicadmin.RequeueOptions{}, &out)
	require.NoError(t, err)
	require.Contains(t, out.String(), "left, it came here too often")
}

func TestADeadLetterGoesBackOnce(t *testing.T) {
	b := streamtest.Start(t)
	b.Topic(t, "requests", 2, nil)
	b.Topic(t, "deadletter", 2, nil)
	p, err := stream.NewProducer(b.Config, b.Deps, "test")
	require.NoError(t, err)
	defer p.Close()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	bury := func(offset int64, at time.Time, stage string) {
		r := &kgo.Record{Topic: "requests", Offset: offset, Timestamp: at, Key: []byte("k"), Value: []byte("v")}
		require.NoError(t, p.DeadLetter(t.Context(), stream.DeadLetter{Record: r, Stage: stage, Class: stream.FaultNotJSON, Err: errors.New("no")}))
	}
	requeue := func(f topicadmin.LetterFilter, want topicadmin.Requeued) string {
		var out strings.Builder
		done, err := topicadmin.Requeue(t.Context(), b.Config, b.Deps, f, topicadmin.RequeueOptions{Apply: true}, &out)
		require.NoError(t, err)
		require.Equal(t, want, done)
		return out.String()
	}
	bury(7, at, "router")
	bury(7, at, "router") // a crash wrote it again
	bury(8, at, "executor")
	require.Contains(t, requeue(topicadmin.LetterFilter{Stage: "router"}, topicadmin.Requeued{Sent: 1, Skipped: 1}), "left, it went back already")
	requeue(topicadmin.LetterFilter{Stage: "router"}, topicadmin.Requeued{Skipped: 2})
	requeue(topicadmin.LetterFilter{}, topicadmin.Requeued{Sent: 1, Skipped: 2})
	requeue(topicadmin.LetterFilter{}, topicadmin.Requeued{Skipped: 3})
	require.Len(t, b.Records(t, "requests"), 2)

	bury(7, at.Add(time.Hour), "router") // the topic was made anew
	requeue(topicadmin.LetterFilter{}, topicadmin.Requeued{Sent: 1, Skipped: 3})
	letters, err := topicadmin.Letters(t.Context(), b.Config, b.Deps, topicadmin.LetterFilter{})
	require.NoError(t, err)
	require.Len(t, letters, 4, "markers are no letters")
	require.Contains(t, letters[0].String(), "(attempt 1, requeued): no")
}
