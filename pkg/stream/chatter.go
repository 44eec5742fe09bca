package stream

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
)

// Calm returns a logger with which all clients of a process share what they may say: see chatter. Other lines pass it as they are.
func Calm(log *slog.Logger) *slog.Logger {
	if log == nil {
		return nil
	}
	return slog.New(calm{log.Handler(), &repeats{}})
}

// calm carries the repeats of a process to its clients.
type calm struct {
	slog.Handler
	said *repeats
}

// WithAttrs implements slog.Handler.
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	return calm{c.Handler.WithAttrs(attrs), c.said}
}

// WithGroup implements slog.Handler.
func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name), c.said} }

// chatter is what the Kafka library says, and what we say as often as it. Its INFO is demoted to DEBUG: what it tells there of heartbeats,
// flushes and ids is a line a second in a service that is well, and drowns what the service itself has to say. Its warnings come with
// every try of every client: of a broker that is gone that is ten lines a second, all the same. So one is said, and then again
// every repeatEvery, with how often it was left out.
type chatter struct {
	slog.Handler
	said *repeats
}

// Chatter is the logger for what is said at every try of something that is tried until it works. Without Calm it shares nothing, so
// whoever tries keeps it.
func (d Deps) Chatter() *slog.Logger {
	h := d.log().Handler()
	if c, ok := h.(calm); ok {
		return slog.New(chatter(c))
	}
	return slog.New(chatter{h, &repeats{}})
}

func demote(l slog.Level) slog.Level {
	if l == slog.LevelInfo {
		return slog.LevelDebug
	}
	return l
}

// Enabled implements slog.Handler.
func (c chatter) Enabled(ctx context.Context, l slog.Level) bool {
	return c.Handler.Enabled(ctx, demote(l))
}

// Handle implements slog.Handler.
func (c chatter) Handle(ctx context.Context, r slog.Record) error {
	r.Level = demote(r.Level)
	if r.Level >= slog.LevelWarn {
		out, say := c.said.say(r)
		if !say {
			return nil
		}
		if out > 0 {
			r = r.Clone()
			r.AddAttrs(slog.Int("left_out", out))
		}
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c chatter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return chatter{c.Handler.WithAttrs(attrs), c.said}
}

// WithGroup implements slog.Handler.
func (c chatter) WithGroup(name string) slog.Handler {
	return chatter{c.Handler.WithGroup(name), c.said}
}

// repeatEvery is how often the same is said again.
const repeatEvery = 30 * time.Second

// repeats remembers what was said. What may be said is a closed set of messages, about brokers, groups and topics.
type repeats struct {
	mu   sync.Mutex
	said map[saying]*repeat
}

// saying is what makes two lines the same: what is said of one broker, group or topic hides nothing that is said of another. Of the
// partitions of a topic one speaks for all.
type saying struct {
	level                      slog.Level
	text, broker, group, topic string
}

type repeat struct {
	at  time.Time
	out int // left out since
}

// say tells whether a line is to be said now, and how many like it were not.
func (s *repeats) say(r slog.Record) (out int, say bool) {
	k := saying{level: r.Level, text: r.Message}
	addr := ""
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "addr": // which is the same for all clients; a seed has a number of its own in each list of seeds
			addr = a.Value.String()
		case "broker":
			k.broker = a.Value.String()
		case "group":
			k.group = a.Value.String()
		case "topic":
			k.topic = a.Value.String()
		}
		return true
	})
	k.broker = cmp.Or(addr, k.broker)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said == nil {
		s.said = map[saying]*repeat{}
	}
	last := s.said[k]
	switch {
	case last == nil:
		s.said[k] = &repeat{at: r.Time}
	case r.Time.Sub(last.at) < repeatEvery:
		last.out++
		return 0, false
	default:
		out = last.out
		last.at, last.out = r.Time, 0
	}
	return out, true
}
