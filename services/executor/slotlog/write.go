package slotlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/pkg/telemetry"
)

const (
	// batchMost is how many records are written at once.
	batchMost = 500
	// patience is how long the broker may owe an answer until those who wait are told.
	patience = 2 * time.Second
	// goodbye is how long it may take to give back what the process has at its end. Whoever has the partitions next drops the rest.
	goodbye = 2 * time.Second
	// again is the wait before something that failed is tried anew.
	again = 500 * time.Millisecond
)

// source names the writer in every event.
const source = "pointsman/executor"

// send writes what is to be written, in order: a free must not overtake its ask. It is tried until it is acknowledged; a record that
// comes twice counts once.
func (l *Log) send(ctx context.Context) {
	for {
		batch := l.next()
		if len(batch) == 0 {
			select {
			case <-l.wake:
				continue
			case <-ctx.Done():
				l.drain(context.WithoutCancel(ctx), 0)
				return
			}
		}
		err := l.cfg.Producer.Write(ctx, batch...)
		if ctx.Err() != nil {
			l.drain(context.WithoutCancel(ctx), len(batch))
			return
		}
		l.mu.Lock()
		if err == nil {
			l.out, l.sent = l.out[len(batch):], time.Time{}
			l.turn(&l.unwritten, "")
		} else {
			l.turn(&l.unwritten, err.Error())
		}
		l.mu.Unlock()
		if err == nil {
			continue
		}
		l.cfg.Log.WarnContext(ctx, "writing to the slots; it is tried again", telemetry.KeyTopic, event.TopicSlots, telemetry.Err(err))
		select {
		case <-time.After(again):
		case <-ctx.Done():
		}
	}
}

// drain writes the rest at the process's end. The records in work are with the client, which is flushed after this.
func (l *Log) drain(ctx context.Context, inWork int) {
	l.mu.Lock()
	l.out = l.out[inWork:]
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	for batch := l.next(); len(batch) > 0 && ctx.Err() == nil; batch = l.next() {
		if err := l.cfg.Producer.Write(ctx, batch...); err != nil {
			l.cfg.Log.WarnContext(ctx, "giving slots back at the end", telemetry.Err(err))
			return
		}
		l.mu.Lock()
		l.out = l.out[len(batch):]
		l.mu.Unlock()
	}
}

// next encodes what is to be written next.
func (l *Log) next() []*kgo.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.out), batchMost)
	recs := make([]*kgo.Record, 0, n)
	for _, r := range l.out[:n] {
		rec, err := l.encode(r)
		if err != nil { // it is of our own making
			panic(fmt.Sprintf("encoding a record of the slots: %v", err))
		}
		recs = append(recs, rec)
	}
	if n > 0 && l.sent.IsZero() {
		l.sent = time.Now()
	}
	return recs
}

func (l *Log) encode(r event.SlotRecord) (*kgo.Record, error) {
	data, err := event.Marshal(r)
	if err != nil {
		return nil, err
	}
	key := r.AttemptID
	switch {
	case r.Kind == event.SlotTake:
		key = fmt.Sprintf("take/%d", r.Partition)
	case key == "":
		key = string(r.Kind)
	}
	return l.cfg.Kafka.Encode(stream.Message{
		Topic: event.TopicSlots, Key: key, Type: event.SlotRecorded, Source: source, ID: fmt.Sprintf("%s/%d/%s", r.Owner, r.Seq, r.Kind), Subject: r.AttemptID,
		Data: data, Fresh: true,
	})
}

// writeState spares readers from what is before. Nobody waits for it, and it may come late.
func (l *Log) writeState(ctx context.Context, s event.SlotsSnapshot, seq int64) {
	rec, err := l.encode(event.SlotRecord{Kind: event.SlotState, Owner: l.cfg.Owner, Seq: seq, State: &s})
	if err != nil {
		l.cfg.Log.ErrorContext(ctx, "encoding the state of the slots", telemetry.Err(err))
		return
	}
	l.cfg.Producer.Produce(ctx, rec, func(_ *kgo.Record, err error) {
		if errors.Is(err, stream.ErrTooLarge) { // those who start read further back
			l.cfg.Log.WarnContext(ctx, "the state of the slots is too large for a record", "entries", len(s.Entries))
		}
	})
}
