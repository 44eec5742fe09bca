package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/pointsman/pointsman/pkg/embedded/broker"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/stream"
	"github.com/pointsman/pointsman/services/pointsman/record"
)

// placeFlags say where recorded decisions are, and of when.
type placeFlags struct {
	Data    string   `help:"Data folder of an embedded broker that is not running (pointsman up --data); it is not changed." placeholder:"DIR" type:"existingdir" xor:"where"`
	Brokers []string `help:"Addresses to find a running Kafka by; 127.0.0.1:9092 if nothing is given." placeholder:"HOST:PORT" sep:"," xor:"where"`
	Prefix  string   `help:"Put before every topic name."`
	From    string   `help:"Decisions from this time on: 2026-11-30T09:00:00Z, 2026-11-30, or 24h for so long ago. Without it from the oldest." placeholder:"TIME"`
	To      string   `help:"Decisions before this time. Without it all that are there now." placeholder:"TIME"`
}

// recordFlags say which recorded decisions are meant.
type recordFlags struct {
	placeFlags
	Tenant      []string `help:"Only decisions for these tenants."`
	Fingerprint []string `help:"Only decisions on queries of these fingerprints."`
}

// given says that recorded decisions are asked for.
func (f placeFlags) given() bool { return f.Data != "" || len(f.Brokers) > 0 }

// errUnfinished is wrapped when reading the record was interrupted: who waits for a verdict must not take that for a good one.
var errUnfinished = errors.New("interrupted before all was read")

func unfinished(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errUnfinished, err)
	}
	return err
}

// chosen says that some recorded decisions are meant and others are not.
func (f recordFlags) chosen() bool {
	return f.Prefix+f.From+f.To != "" || len(f.Tenant)+len(f.Fingerprint) > 0
}

func (f placeFlags) open(ctx context.Context) (*record.Record, error) {
	if f.Data == "" {
		cfg := kafkaFlags{Brokers: f.Brokers, Prefix: f.Prefix}.config()
		if len(f.Brokers) == 0 {
			cfg.Brokers = stream.DefaultConfig().Brokers
		}
		return record.OfKafka(cfg), nil
	}
	r, err := record.OfFolder(ctx, f.Data)
	switch {
	case errors.Is(err, broker.ErrInUse):
		return nil, &lifecycle.UsageError{Err: fmt.Errorf("pointsman is running on %s: read from its broker instead, e.g. --brokers 127.0.0.1:9092, or stop it: %w", f.Data, err)}
	case errors.Is(err, broker.ErrNoData):
		return nil, &lifecycle.UsageError{Err: fmt.Errorf("%s is no data folder of `pointsman up --data`: %w", f.Data, err)}
	}
	return r, err
}

// span reads the two times.
func (f placeFlags) span(now time.Time) (from, to time.Time, err error) {
	if from, err = moment(f.From, now); err != nil {
		return from, to, &lifecycle.UsageError{Err: fmt.Errorf("--from: %w", err)}
	}
	if to, err = moment(f.To, now); err != nil {
		return from, to, &lifecycle.UsageError{Err: fmt.Errorf("--to: %w", err)}
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, &lifecycle.UsageError{Err: fmt.Errorf("--from %s is not before --to %s", from.Format(time.RFC3339), to.Format(time.RFC3339))}
	}
	return from, to, nil
}

// moment reads a time: one of the calendar, in UTC unless it says otherwise, or how long ago.
func moment(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 {
			return now.Add(-time.Duration(n * 24 * float64(time.Hour))).UTC(), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2026-11-30T09:00:00Z, 2026-11-30, or 24h for so long ago", s)
}

// bar shows progress on a terminal, and nothing anywhere else.
func (s *streams) bar(what string) (update func(done, total int64), finish func()) {
	if !s.terminal {
		return nil, func() {}
	}
	var bar *progressbar.ProgressBar
	return func(done, total int64) {
			if bar == nil {
				bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(s.err), progressbar.OptionSetDescription(what),
					progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
			}
			_ = bar.Set64(done)
		}, func() {
			if bar != nil {
				_ = bar.Finish()
			}
		}
}

// samples is a number of samples as a replay takes it, whose 0 is a default.
func samples(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// baseName is a file's name without its folder; nothing stays nothing.
func baseName(file string) string {
	if file == "" {
		return ""
	}
	return filepath.Base(file)
}
