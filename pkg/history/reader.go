package history

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/profile"
)

// DefaultWindow is the span that profiles cover.
const DefaultWindow = 7 * 24 * time.Hour

// Reader reads profiles and summaries. Its methods may be called from several goroutines.
type Reader struct {
	db     *DB
	window time.Duration
}

// NewReader returns a reader on an open history whose profiles cover a window; 0 is DefaultWindow.
func NewReader(db *DB, window time.Duration) *Reader {
	if window <= 0 {
		window = DefaultWindow
	}
	return &Reader{db: db, window: window}
}

// Profiles returns what history says of the fingerprints, per engine and cluster, by one query however many they are: all
// buckets of parameters together, and each of the 63 most frequent by itself. A key that is not in the result has no history; what is unknown of one that is there is nil. What was stored before the call is in it.
func (r *Reader) Profiles(ctx context.Context, fingerprints []string, now time.Time) (map[profile.Key]profile.Profile, error) {
	if len(fingerprints) == 0 {
		return map[profile.Key]profile.Profile{}, nil
	}
	fingerprints = slices.Compact(slices.Sorted(slices.Values(fingerprints)))
	now = now.UTC()
	ctx = clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{
		"fingerprints": hexList(fingerprints),
		"from":         unix(now.Add(-r.window).Truncate(time.Hour)),
		"tail":         unix(now.Add(-time.Hour).Truncate(time.Hour)),
		"stops":        stops(),
	}))
	rows, err := r.db.conn.Query(ctx, statement("profiles"))
	if err != nil {
		return nil, fmt.Errorf("reading profiles: %w", err)
	}
	defer rows.Close()
	out := map[profile.Key]profile.Profile{}
	for rows.Next() {
		var p profileRow
		if err := rows.Scan(p.fields()...); err != nil {
			return nil, fmt.Errorf("reading profiles: %w", err)
		}
		prof := p.profile()
		prof.Window, prof.AsOf = windowName(r.window), now
		out[prof.Key] = prof
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading profiles: %w", err)
	}
	return out, nil
}

// Lookup is Profiles for a caller that goes on without history: an error is an answer that was not had.
func (r *Reader) Lookup(ctx context.Context, fingerprints []string, now time.Time) (profile.Lookup, error) {
	found, err := r.Profiles(ctx, fingerprints, now)
	return profile.Lookup{Found: found, Asked: err == nil}, err
}

// profileRow is a line of profiles.sql.
type profileRow struct {
	key                               profile.Key
	runs, successes, kills, afterKill uint64
	tasks, hits                       uint64
	execN                             uint64
	execSum                           float64
	execP50, execP95                  float32
	readN                             uint64
	readSum                           float64
	stopN                             uint64
	stopSum                           float64
	peakN, peakMax                    uint64
}

func (p *profileRow) fields() []any {
	return []any{
		&p.key.Fingerprint, &p.key.Engine, &p.key.Cluster, &p.key.Bucket, &p.runs, &p.successes, &p.kills, &p.afterKill, &p.tasks, &p.hits,
		&p.execN, &p.execSum, &p.execP50, &p.execP95, &p.readN, &p.readSum, &p.stopN, &p.stopSum, &p.peakN, &p.peakMax,
	}
}

func (p *profileRow) profile() profile.Profile {
	out := profile.Profile{
		Key: p.key, Runs: int64(p.runs), Successes: int64(p.successes), MemoryKills: int64(p.kills),
		SuccessesAfterKill: int64(p.afterKill), Tasks: int64(p.tasks), Hits: int64(p.hits),
	}
	if p.execN > 0 {
		mean, p50, p95 := p.execSum/float64(p.execN), float64(p.execP50), float64(p.execP95)
		out.ExecMsMean, out.ExecMsP50, out.ExecMsP95 = &mean, &p50, &p95
	}
	if p.readN > 0 {
		mean := p.readSum / float64(p.readN)
		out.ReadBytesMean = &mean
	}
	if p.stopN > 0 {
		mean := p.stopSum / float64(p.stopN)
		out.TimeStops, out.TimeStopMs = int64(p.stopN), &mean
	}
	if p.peakN > 0 {
		peak := int64(min(p.peakMax, math.MaxInt64))
		out.PeakMemoryBytes = &peak
	}
	return out
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// windowName writes a span as people do: 7d, 12h.
func windowName(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	return d.String()
}
