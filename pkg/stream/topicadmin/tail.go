package topicadmin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/stream"
)

// TailOptions say what to show.
type TailOptions struct {
	Topics []string // without prefix
	// Since shows records from a time on. Zero shows what is there, or with Follow what comes from now on.
	Since  time.Time
	Follow bool // go on until the context ends
	// Key shows only records of one key.
	Key string
	// Limit stops after so many records; 0 is no limit.
	Limit int
	JSON  bool // a JSON object per line, instead of text
}

var errEnough = errors.New("enough")

// Tail writes records to w, what is there in order of time, what comes as it comes. It commits nothing. It returns nil when all was shown
// or the context has ended.
func Tail(ctx context.Context, cfg stream.Config, deps stream.Deps, opts TailOptions, w io.Writer) error {
	shown := 0
	show := func(r *kgo.Record) error {
		if opts.Key != "" && string(r.Key) != opts.Key {
			return nil
		}
		line, err := format(cfg, r, opts.JSON)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return fmt.Errorf("showing records: %w", err)
		}
		if shown++; opts.Limit > 0 && shown >= opts.Limit {
			return errEnough
		}
		return nil
	}
	err := tail(ctx, cfg, deps, opts, show)
	if ctx.Err() == nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

func tail(ctx context.Context, cfg stream.Config, deps stream.Deps, opts TailOptions, show func(*kgo.Record) error) error {
	if !opts.Follow {
		return past(ctx, cfg, deps, opts, show)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	t := stream.NewTail(cfg, deps, stream.TailConfig{Topics: opts.Topics, Name: "show", FromEnd: opts.Since.IsZero()})
	var failed error
	err := t.Run(ctx, func(recs []*kgo.Record) {
		for _, r := range recs {
			if failed == nil && !r.Timestamp.Before(opts.Since) {
				failed = show(r)
			}
		}
		if failed != nil {
			stop(failed)
		}
	})
	return cmp.Or(failed, err)
}

// pastSorted bounds what is sorted by time; a larger past is shown partition by partition as it is read.
const pastSorted = 10_000

func past(ctx context.Context, cfg stream.Config, deps stream.Deps, opts TailOptions, show func(*kgo.Record) error) error {
	ranges, err := stream.Plan(ctx, cfg, deps, opts.Topics, opts.Since, time.Time{})
	if err != nil {
		return err
	}
	var n int64
	for _, r := range ranges {
		n += r.To - r.From
	}
	if n > pastSorted {
		return stream.ReadRanges(ctx, cfg, deps, ranges, show)
	}
	var recs []*kgo.Record
	if err := stream.ReadRanges(ctx, cfg, deps, ranges, func(r *kgo.Record) error { recs = append(recs, r); return nil }); err != nil {
		return err
	}
	slices.SortStableFunc(recs, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
	for _, r := range recs {
		if err := show(r); err != nil {
			return err
		}
	}
	return nil
}

// shownRecord is one line in JSON. Values that are JSON are shown as they are.
type shownRecord struct {
	Topic     string            `json:"topic"`
	Partition int32             `json:"partition"`
	Offset    int64             `json:"offset"`
	Time      time.Time         `json:"time"`
	Key       *string           `json:"key"`
	Headers   map[string]string `json:"headers,omitempty"`
	Value     json.RawMessage   `json:"value,omitempty"`
	Text      *string           `json:"text,omitempty"`   // a value that is text and not JSON
	Base64    *string           `json:"base64,omitempty"` // a value that is neither
}

func format(cfg stream.Config, r *kgo.Record, asJSON bool) (string, error) {
	topic := cfg.Name(r.Topic)
	if !asJSON {
		typ := ""
		for _, h := range r.Headers {
			if h.Key == "ce_type" {
				typ = printable(h.Value)
			}
		}
		return fmt.Sprintf("%s %s[%d]@%d %s %s %s", r.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"), topic, r.Partition, r.Offset,
			cmp.Or(printable(r.Key), "-"), cmp.Or(typ, "-"), cmp.Or(printable(r.Value), "(null)")), nil
	}
	s := shownRecord{Topic: topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UTC()}
	if r.Key != nil {
		key := printable(r.Key)
		s.Key = &key
	}
	for _, h := range r.Headers {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[h.Key] = printable(h.Value)
	}
	switch {
	case r.Value == nil:
	case json.Valid(r.Value):
		s.Value = r.Value
	case utf8.Valid(r.Value):
		text := string(r.Value)
		s.Text = &text
	default:
		text := base64.StdEncoding.EncodeToString(r.Value)
		s.Base64 = &text
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return "", fmt.Errorf("showing a record: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// printable keeps a terminal safe from what is in a record.
func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, string(b))
}
