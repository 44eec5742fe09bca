package topicadmin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/stream"
)

// Letter is a dead letter with what its headers say.
type Letter struct {
	Record    *kgo.Record
	Topic     string // where it lay, without prefix
	Partition string
	Offset    string
	Stage     string
	Class     string
	Message   string
	Attempts  int  // how often it came here
	Cut       bool // something of it did not fit and is gone
	Requeued  bool // it, or another letter of the same record, went back already

	timestamp string // of the record where it lay
	marker    bool
}

// requeuedMark is the header of a marker: a record without a value that Requeue writes behind the dead letters, with the headers
// that say where the requeued record lay. It is younger than the letter, and so kept for longer.
const requeuedMark = stream.DLQPrefix + "requeued"

// origin is the record that a letter or a marker is about. The time tells it from one of a topic that was made anew.
type origin struct{ topic, partition, offset, timestamp string }

func (l Letter) origin() origin { return origin{l.Topic, l.Partition, l.Offset, l.timestamp} }

// LetterFilter says which dead letters are meant. Empty fields mean all.
type LetterFilter struct {
	Topic string
	Stage string
	Class string
	Since time.Time
}

func (f LetterFilter) takes(l Letter) bool {
	return (f.Topic == "" || f.Topic == l.Topic) && (f.Stage == "" || f.Stage == l.Stage) && (f.Class == "" || f.Class == l.Class)
}

// Letters reads the dead letters that are there now, oldest first.
func Letters(ctx context.Context, cfg stream.Config, deps stream.Deps, f LetterFilter) ([]Letter, error) {
	ranges, err := stream.Plan(ctx, cfg, deps, []string{event.TopicDeadLetter}, f.Since, time.Time{})
	if err != nil {
		return nil, err
	}
	var letters []Letter
	back := map[origin]bool{}
	err = stream.ReadRanges(ctx, cfg, deps, ranges, func(r *kgo.Record) error {
		switch l := letter(r); {
		case l.marker:
			back[l.origin()] = l.Offset != "" // without one it could be any record
		case f.takes(l) && !r.Timestamp.Before(f.Since):
			letters = append(letters, l)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading dead letters: %w", err)
	}
	for i, l := range letters {
		letters[i].Requeued = back[l.origin()]
	}
	slices.SortStableFunc(letters, func(a, b Letter) int { return a.Record.Timestamp.Compare(b.Record.Timestamp) })
	return letters, nil
}

func letter(r *kgo.Record) Letter {
	l := Letter{Record: r}
	for _, h := range r.Headers {
		value := printable(h.Value)
		switch h.Key {
		case stream.DLQTopic:
			l.Topic = value
		case stream.DLQPartition:
			l.Partition = value
		case stream.DLQOffset:
			l.Offset = value
		case stream.DLQTimestamp:
			l.timestamp = value
		case requeuedMark:
			l.marker = true
		case stream.DLQStage:
			l.Stage = value
		case stream.DLQClass:
			l.Class = value
		case stream.DLQMessage:
			l.Message = value
		case stream.DLQAttempts:
			l.Attempts, _ = strconv.Atoi(value)
		case stream.DLQValueSHA256, stream.DLQKeySHA256, stream.DLQHeadersDropped:
			l.Cut = true
		}
	}
	return l
}

// String is a line for people.
func (l Letter) String() string {
	how := fmt.Sprintf("attempt %d", l.Attempts)
	if l.Requeued {
		how += ", requeued"
	}
	return fmt.Sprintf("%s %s[%s]@%s %s %s (%s): %s", l.Record.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"),
		l.Topic, l.Partition, l.Offset, l.Stage, l.Class, how, cmp.Or(l.Message, "no message"))
}

// RequeueOptions say how dead letters go back.
type RequeueOptions struct {
	Apply bool // otherwise it only says what it would do
	// MaxAttempts keeps a record from going round for ever: one that came here so often stays. 0 means 3.
	MaxAttempts int
}

// Requeued counts what Requeue did, or would do.
type Requeued struct{ Sent, Skipped int }

// Requeue writes dead letters back to where they lay, as they came, and says so line by line. A record that was cut, that names no
// topic, that came here too often, or that went back already is left. Nothing is deleted: a marker behind the letters says what
// went back. Ended between a record and its marker, or run twice at the same time, it sends a record twice.
func Requeue(ctx context.Context, cfg stream.Config, deps stream.Deps, f LetterFilter, opts RequeueOptions, w io.Writer) (Requeued, error) {
	var done Requeued
	letters, err := Letters(ctx, cfg, deps, f)
	if err != nil {
		return done, err
	}
	p, err := stream.NewProducer(cfg, deps, "requeue")
	if err != nil {
		return done, err
	}
	defer p.Close()
	limit := cmp.Or(opts.MaxAttempts, 3)
	back := map[origin]bool{} // several services may have given up the same record, or one of them twice
	for _, l := range letters {
		verb := "would send"
		switch {
		case l.Topic == "" || l.Topic == event.TopicDeadLetter:
			verb = "left, it names no topic:"
		case l.Cut:
			verb = "left, it is not whole:"
		case l.Attempts >= limit:
			verb = "left, it came here too often:"
		case l.Requeued || back[l.origin()]:
			verb = "left, it went back already:"
		case opts.Apply:
			verb = "sent"
			if err := p.Write(ctx, original(cfg, l)); err != nil {
				return done, fmt.Errorf("requeueing %s: %w", l, err)
			}
			if err := p.Write(ctx, marker(cfg, l, time.Now())); err != nil {
				return done, fmt.Errorf("noting that it was requeued, of %s: %w", l, err)
			}
		}
		if strings.HasPrefix(verb, "left") {
			done.Skipped++
		} else {
			done.Sent++
			back[l.origin()] = l.Offset != ""
		}
		if _, err := fmt.Fprintf(w, "%s %s\n", verb, l); err != nil {
			return done, fmt.Errorf("requeueing: %w", err)
		}
	}
	return done, nil
}

// original is the record as it came. How often it was dead stays with it, so that the count goes on if it comes back.
func original(cfg stream.Config, l Letter) *kgo.Record {
	out := &kgo.Record{Topic: cfg.Topic(l.Topic), Key: l.Record.Key, Value: l.Record.Value}
	for _, h := range l.Record.Headers {
		if !strings.HasPrefix(h.Key, stream.DLQPrefix) || h.Key == stream.DLQAttempts || h.Key == stream.DLQFirstSeen {
			out.Headers = append(out.Headers, h)
		}
	}
	return out
}

// marker says that a letter's record went back.
func marker(cfg stream.Config, l Letter, now time.Time) *kgo.Record {
	out := &kgo.Record{Topic: cfg.Topic(event.TopicDeadLetter), Headers: []kgo.RecordHeader{
		{Key: requeuedMark, Value: []byte(now.UTC().Format(time.RFC3339Nano))},
	}}
	for _, h := range l.Record.Headers {
		switch h.Key {
		case stream.DLQTopic, stream.DLQPartition, stream.DLQOffset, stream.DLQTimestamp:
			out.Headers = append(out.Headers, h)
		}
	}
	return out
}
