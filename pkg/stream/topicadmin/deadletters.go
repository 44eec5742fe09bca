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
}

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
	err = stream.ReadRanges(ctx, cfg, deps, ranges, func(r *kgo.Record) error {
		if l := letter(r); f.takes(l) && !r.Timestamp.Before(f.Since) {
			letters = append(letters, l)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading dead letters: %w", err)
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
	return fmt.Sprintf("%s %s[%s]@%s %s %s (attempt %d): %s", l.Record.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"),
		l.Topic, l.Partition, l.Offset, l.Stage, l.Class, l.Attempts, cmp.Or(l.Message, "no message"))
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
// topic, or that came here too often is left. Nothing is deleted: running it twice sends twice.
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
	for _, l := range letters {
		verb := "would send"
		switch {
		case l.Topic == "" || l.Topic == event.TopicDeadLetter:
			verb = "left, it names no topic:"
		case l.Cut:
			verb = "left, it is not whole:"
		case l.Attempts >= limit:
			verb = "left, it came here too often:"
		case opts.Apply:
			verb = "sent"
			if err := p.Write(ctx, original(cfg, l)); err != nil {
				return done, fmt.Errorf("requeueing %s: %w", l, err)
			}
		}
		if strings.HasPrefix(verb, "left") {
			done.Skipped++
		} else {
			done.Sent++
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
