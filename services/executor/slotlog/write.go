package slotlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
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
// comes twice counts once. At the end of the context it gives back what it can in short time.
func (l *Log) send(ctx context.Context) {
	bound, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(goodbye, cancel) })()
	var producer *stream.Producer
	defer func() {
		if producer != nil {
			producer.Close()
		}
	}()
	said := ""
	for bound.Err() == nil {
		batch := l.next()
		if len(batch) == 0 {
			select {
			case <-l.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		var err error
		if producer == nil {
			producer, err = stream.NewProducer(l.cfg.Kafka, l.cfg.Deps, "executor-slots")
		}
		if err == nil {
			err = producer.Write(bound, batch...)
		}
		if errors.Is(err, kerr.UnknownTopicID) { // the topic was made anew, which a client never believes
			producer.Close()
			producer = nil
		}
		if err = l.written(ctx, err); err == nil {
			continue
		}
		if err.Error() != said {
			said = err.Error()
			l.cfg.Log.WarnContext(ctx, "writing to the slots; it is tried again", telemetry.KeyTopic, event.TopicSlots, telemetry.Err(err))
		}
		select {
		case <-time.After(again):
		case <-bound.Done():
		}
	}
}

// next encodes what is to be written next, which is what was not written before.
func (l *Log) next() []*kgo.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.inWork) == 0 {
		n := min(len(l.out), batchMost)
		if i := slices.IndexFunc(l.out[:n], isState); i >= 0 { // alone: a batch that the broker finds too large comes in any order
			n = max(i, 1)
		}
		l.inWork, l.out = l.out[:n:n], l.out[n:]
	}
	recs := make([]*kgo.Record, 0, len(l.inWork))
	for _, r := range l.inWork {
		rec, err := l.encode(r)
		if err != nil { // it is of our own making
			panic(fmt.Sprintf("encoding a record of the slots: %v", err))
		}
		recs = append(recs, rec)
	}
	if len(recs) > 0 && l.sent.IsZero() {
		l.sent = time.Now()
	}
	return recs
}

// written notes what became of what was in work. It returns an error if that is to be tried again later.
func (l *Log) written(ctx context.Context, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.inWork, l.sent = nil, time.Time{}
		l.turn(&l.unwritten, "")
	case errors.Is(err, stream.ErrTooLarge): // a state is the only large one; who starts without it reads further back
		l.cfg.Log.WarnContext(ctx, "the state of the slots is too large for a record", telemetry.Err(err))
		l.inWork, l.sent = slices.DeleteFunc(l.inWork, isState), time.Time{}
		l.turn(&l.unwritten, "")
		return nil
	default:
		l.turn(&l.unwritten, err.Error())
	}
	return err
}

func isState(r event.SlotRecord) bool { return r.Kind == event.SlotState }

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
