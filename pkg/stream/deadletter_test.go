package stream

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return "(none)"
}

func TestDeadLetterKeepsTheRecord(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Prefix = "dev."
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := &kgo.Record{
		Topic: "dev.requests", Partition: 3, Offset: 42, Timestamp: at, Key: nil, Value: []byte{0xff, 0x00},
		Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte{0xfe}}, {Key: "ce_type", Value: nil}},
	}
	d := DeadLetter{Record: in, Group: "router", Stage: "router", Class: FaultNotJSON, Err: errors.New(strings.Repeat("é", 2000) + "\xff")}
	out := cfg.deadLetter(d, 1<<20)
	require.Equal(t, "dev.deadletter", out.Topic)
	require.Nil(t, out.Key)
	require.Equal(t, in.Value, out.Value)
	require.Equal(t, in.Headers, out.Headers[:2])
	require.Equal(t, out, cfg.deadLetter(d, 1<<20), "the same however often it is written")
	for key, want := range map[string]string{
		DLQTopic: "requests", DLQPartition: "3", DLQOffset: "42", DLQTimestamp: "2026-01-02T03:04:05Z", DLQGroup: "router",
		DLQClass: "not_json", DLQAttempts: "1", DLQFirstSeen: "2026-01-02T03:04:05Z", DLQValueSHA256: "(none)",
	} {
		require.Equal(t, want, header(out, key), key)
	}
	require.LessOrEqual(t, len(header(out, DLQMessage)), dlqMessageBytes+len("…"))

	// it is replayed and fails again, elsewhere
	back := *out
	back.Topic, back.Offset, back.Timestamp = "dev.requests", 99, at.Add(time.Hour)
	again := cfg.deadLetter(DeadLetter{Record: &back, Class: FaultSchema}, 1<<20)
	require.Equal(t, "2", header(again, DLQAttempts))
	require.Equal(t, "99", header(again, DLQOffset))
	require.Equal(t, "2026-01-02T03:04:05Z", header(again, DLQFirstSeen))
	require.Equal(t, in.Headers, again.Headers[:2], "headers of the last time are replaced, not piled up")
}

func TestDeadLetterOversize(t *testing.T) {
	const limit = 20_000
	cfg := DefaultConfig()
	big := strings.Repeat("é", 50_000)
	for name, in := range map[string]*kgo.Record{
		"value":   {Topic: "t", Key: []byte("k"), Value: []byte(big)},
		"headers": {Topic: "t", Key: []byte("k"), Value: []byte("{}"), Headers: []kgo.RecordHeader{{Key: "x", Value: []byte(big)}}},
		"key":     {Topic: "t", Key: []byte(big), Value: []byte("{}")},
		"all":     {Topic: "t", Key: []byte(big), Value: []byte(big), Headers: []kgo.RecordHeader{{Key: "x", Value: []byte(big)}}},
	} {
		t.Run(name, func(t *testing.T) {
			out := cfg.deadLetter(DeadLetter{Record: in, Class: FaultNotJSON, Err: errors.New(big), Group: big, Stage: big}, limit)
			require.LessOrEqual(t, recordSize(out)+batchOverhead, limit)
			if len(in.Value) < 10_000 {
				require.Equal(t, in.Value, out.Value, "what fits is kept")
			} else {
				require.Equal(t, "100000", header(out, DLQValueBytes))
				require.Equal(t, hash(in.Value), header(out, DLQValueSHA256))
				require.Zero(t, len(out.Value)%2, "cut between characters")
			}
			if len(in.Headers) > 0 {
				require.Equal(t, "1", header(out, DLQHeadersDropped))
			}
			if len(in.Key) > 10_000 {
				require.Equal(t, hash(in.Key), header(out, DLQKeySHA256))
			}
		})
	}
}
