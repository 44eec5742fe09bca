package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
)

// Headers that a dead letter carries on top of its own.
const (
	DLQPrefix = "dlq_" // of all of them

	DLQTopic     = DLQPrefix + "topic" // where the record lay, without prefix
	DLQPartition = DLQPrefix + "partition"
	DLQOffset    = DLQPrefix + "offset"
	DLQTimestamp = DLQPrefix + "timestamp"
	DLQGroup     = DLQPrefix + "group"
	DLQStage     = DLQPrefix + "stage"
	DLQClass     = DLQPrefix + "class"
	DLQMessage   = DLQPrefix + "message"
	DLQAttempts  = DLQPrefix + "attempts"   // how often it came here, counting replays
	DLQFirstSeen = DLQPrefix + "first_seen" // the record time of its first arrival

	// What did not fit, of a record that was too large to be kept whole.
	DLQValueBytes     = DLQPrefix + "value_bytes"
	DLQValueSHA256    = DLQPrefix + "value_sha256"
	DLQKeySHA256      = DLQPrefix + "key_sha256"
	DLQHeadersDropped = DLQPrefix + "headers_dropped"
)

const (
	dlqMessageBytes = 1024
	dlqShortBytes   = 256
	dlqHeaderBytes  = 4096 // bound on all of ours together
	dlqKeyBytes     = 1024
)

// DeadLetter is a record that could not be used, with why.
type DeadLetter struct {
	Record *kgo.Record // as it was read
	Group  string
	Stage  string // the service, or the part of it, that gave up
	Class  FaultClass
	Err    error
	// FirstSeen is the record's own time when empty: a dead letter has to be the same however often it is written.
	FirstSeen time.Time
}

// DeadLetter writes a record to the dead letter topic with its key, value and headers untouched. If it fails, the caller must not
// mark the record as done: it would be lost.
func (p *Producer) DeadLetter(ctx context.Context, d DeadLetter) error {
	rec := p.cfg.deadLetter(d, p.deps.maxBytes(event.TopicDeadLetter))
	if err := p.Write(ctx, rec); err != nil {
		return fmt.Errorf("dead-lettering %s[%d]@%d: %w", d.Record.Topic, d.Record.Partition, d.Record.Offset, err)
	}
	p.dead.WithLabelValues(p.cfg.Name(d.Record.Topic), d.Stage, string(d.Class)).Inc()
	return nil
}

// deadLetter builds the record. One that is too large loses the end of its value; if that is not enough, also its headers and the end
// of its key. The hashes say what was lost.
func (c Config) deadLetter(d DeadLetter, maxBytes int) *kgo.Record {
	in := d.Record
	out := &kgo.Record{Topic: c.Topic(event.TopicDeadLetter), Key: in.Key, Value: in.Value}
	attempts, first := 1, d.FirstSeen
	if first.IsZero() {
		first = in.Timestamp
	}
	for _, h := range in.Headers {
		switch {
		case !strings.HasPrefix(h.Key, DLQPrefix):
			out.Headers = append(out.Headers, h)
		case h.Key == DLQAttempts:
			if n, err := strconv.Atoi(string(h.Value)); err == nil && n > 0 && n < 1<<20 {
				attempts = n + 1
			}
		case h.Key == DLQFirstSeen:
			if t, err := time.Parse(time.RFC3339Nano, string(h.Value)); err == nil {
				first = t
			}
		}
	}
	var ours []kgo.RecordHeader
	add := func(key, value string) { ours = append(ours, kgo.RecordHeader{Key: key, Value: []byte(value)}) }
	add(DLQTopic, c.Name(in.Topic))
	add(DLQPartition, strconv.Itoa(int(in.Partition)))
	add(DLQOffset, strconv.FormatInt(in.Offset, 10))
	add(DLQTimestamp, in.Timestamp.UTC().Format(time.RFC3339Nano))
	add(DLQGroup, bounded(d.Group, dlqShortBytes))
	add(DLQStage, bounded(d.Stage, dlqShortBytes))
	add(DLQClass, string(d.Class))
	if d.Err != nil {
		add(DLQMessage, bounded(strings.ToValidUTF8(d.Err.Error(), "?"), dlqMessageBytes))
	}
	add(DLQAttempts, strconv.Itoa(attempts))
	add(DLQFirstSeen, first.UTC().Format(time.RFC3339Nano))

	room := maxBytes - batchOverhead - dlqHeaderBytes
	without := func() int { return recordSize(out) - len(out.Value) }
	if without() > room && len(out.Headers) > 0 {
		add(DLQHeadersDropped, strconv.Itoa(len(out.Headers)))
		out.Headers = nil
	}
	if without() > room && len(out.Key) > dlqKeyBytes {
		add(DLQKeySHA256, hash(in.Key))
		out.Key = cutText(out.Key, dlqKeyBytes)
	}
	if size := recordSize(out); size > room && len(out.Value) > 0 {
		add(DLQValueBytes, strconv.Itoa(len(in.Value)))
		add(DLQValueSHA256, hash(in.Value))
		out.Value = cutText(out.Value, max(0, len(out.Value)-(size-room)))
	}
	out.Headers = append(out.Headers, ours...)
	return out
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// cutText cuts bytes, between characters if they are text.
func cutText(b []byte, n int) []byte {
	if n >= len(b) {
		return b
	}
	for k := n; k > 0 && n-k < utf8.UTFMax; k-- {
		if utf8.RuneStart(b[k]) {
			return b[:k]
		}
	}
	return b[:n]
}
