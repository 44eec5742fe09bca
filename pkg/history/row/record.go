// Package row turns events into rows of the history's tables, and checks every value before it gets near a driver.
//
// It is pure: a record's coordinates and its event in, a row or a *ColumnError out. The driver coerces silently (300 into a
// UInt8 becomes 44, the year 9999 becomes 1900), so what does not fit is refused here, with the column's name. Sending rows,
// retrying and dead-lettering is left to pkg/history and the profiler.
package row

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
)

// SchemaVersion is the revision of the tables' layout as this version writes it. It is part of every deduplication token.
const SchemaVersion = 2

// Record is where an event's record lies, and when the log took it.
type Record struct {
	// Topic is the topic's name without the configured prefix.
	Topic     string
	Partition int32
	Offset    int64
	// At is the record's timestamp: the clock that event times are held against, the same on every replay.
	At time.Time
}

// Base is what every row of an event table has.
type Base struct {
	Partition int32
	Offset    uint64
	RecordAt  time.Time
	// Clamped means that a time of the event could not be true, and the record's stands in its place.
	Clamped bool
	Extra   string
}

// ColumnError is a value that its column can't hold. The record goes to the dead letter, the others of its batch do not.
type ColumnError struct {
	Table   string
	Column  string
	Message string
}

// Error names the column and what is wrong.
func (e *ColumnError) Error() string {
	return fmt.Sprintf("%s.%s: %s", e.Table, e.Column, e.Message)
}

// Tolerance is how far an event's time may lie from its record's before the record's is taken instead.
type Tolerance struct{ Ahead, Behind time.Duration }

// The tolerances. Nothing is told before it happens, so ahead is for clocks that are a little off. Behind is wide where an
// outage may hold an event back (an Outcome is published again with the time it was first given), narrow for requests.
var (
	requestTolerance = Tolerance{Ahead: time.Minute, Behind: 5 * time.Minute}
	eventTolerance   = Tolerance{Ahead: time.Minute, Behind: 7 * 24 * time.Hour}
)

// The range of times that the tables hold: a TTL is computed as DateTime, which wraps in 2106.
var (
	minTime = time.Unix(0, 0).UTC()
	maxTime = time.Date(2106, 1, 1, 0, 0, 0, 0, time.UTC)
)

// check collects the first fault of a row, so that the mapping functions read as a list of columns.
type check struct {
	table string
	rec   Record
	base  Base
	err   *ColumnError
}

func begin(table string, rec Record, extra query.Extra) *check {
	c := &check{table: table, rec: rec}
	if rec.Offset < 0 {
		c.fail("k_offset", "%d is negative", rec.Offset)
	}
	c.base = Base{Partition: rec.Partition, Offset: uint64(max(rec.Offset, 0)), RecordAt: c.inRange("k_ts", rec.At), Extra: extraJSON(extra)}
	return c
}

// done returns the fault, or nil: never a nil pointer in an interface.
func (c *check) done() error {
	if c.err != nil {
		return c.err
	}
	return nil
}

func (c *check) fail(column, format string, args ...any) {
	if c.err == nil {
		c.err = &ColumnError{Table: c.table, Column: column, Message: fmt.Sprintf(format, args...)}
	}
}

func (c *check) required(column, v string) string {
	if v == "" {
		c.fail(column, "is missing")
	}
	return v
}

func (c *check) u16(column string, v int) uint16 {
	if v < 0 || v > math.MaxUint16 {
		c.fail(column, "%d is outside 0 to %d", v, math.MaxUint16)
	}
	return uint16(v)
}

func (c *check) u32(column string, v int) uint32 {
	if v < 0 || v > math.MaxUint32 {
		c.fail(column, "%d is outside 0 to %d", v, uint32(math.MaxUint32))
	}
	return uint32(v)
}

func (c *check) i32(column string, v int) int32 {
	if v < math.MinInt32 || v > math.MaxInt32 {
		c.fail(column, "%d is outside %d to %d", v, math.MinInt32, math.MaxInt32)
	}
	return int32(v)
}

func (c *check) u64(column string, v int64) uint64 {
	if v < 0 {
		c.fail(column, "%d is negative", v)
	}
	return uint64(v)
}

// quantity is a number that may be unknown, and never negative.
func (c *check) quantity(column string, v *int64) *uint64 {
	if v == nil {
		return nil
	}
	n := c.u64(column, *v)
	return &n
}

// millis is a duration that may be unknown. A negative one comes from a clock that was set back: it is held to zero, and the
// row says so.
func (c *check) millis(v *int64) *uint64 {
	if v == nil {
		return nil
	}
	n := uint64(max(*v, 0))
	c.base.Clamped = c.base.Clamped || *v < 0
	return &n
}

// seconds turns seconds into milliseconds.
func (c *check) seconds(column string, v *float64) *uint64 {
	if v == nil {
		return nil
	}
	ms := *v * 1000
	if math.IsNaN(ms) || ms < 0 || ms >= math.MaxInt64 {
		c.fail(column, "%v seconds can't be stored", *v)
		return nil
	}
	n := uint64(math.Round(ms))
	return &n
}

// inRange refuses a time that the tables can't hold.
func (c *check) inRange(column string, t time.Time) time.Time {
	switch {
	case t.IsZero():
		c.fail(column, "is missing")
	case t.Before(minTime) || !t.Before(maxTime):
		c.fail(column, "%s is outside %d to %d", t.UTC().Format(time.RFC3339), minTime.Year(), maxTime.Year())
	}
	return t.UTC()
}

func (c *check) maybeTime(column string, t *time.Time) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	v := c.inRange(column, *t)
	return &v
}

// clamp holds an event's time against the record's. The result is the same on every replay.
func (c *check) clamp(column string, t time.Time, tol Tolerance) time.Time {
	t = c.inRange(column, t)
	if t.After(c.rec.At.Add(tol.Ahead)) || t.Before(c.rec.At.Add(-tol.Behind)) {
		c.base.Clamped = true
		return c.rec.At.UTC()
	}
	return t
}

// known is a number that is there and fresh, else nil.
func known[V interface{ Get() (float64, bool) }](v V) *float64 {
	if n, ok := v.Get(); ok {
		return &n
	}
	return nil
}

func knownOnes(values map[string]signal.Value) map[string]float64 {
	out := make(map[string]float64, len(values))
	for name, v := range values {
		if n, ok := v.Get(); ok {
			out[name] = n
		}
	}
	return out
}

func extraJSON(extra query.Extra) string {
	if len(extra) == 0 {
		return ""
	}
	data, err := json.Marshal(extra)
	if err != nil {
		return "" // its members were decoded from JSON, so they encode
	}
	return string(data)
}

// list never returns nil, which a driver might take for NULL.
func list(v []string) []string {
	if v == nil {
		return []string{}
	}
	return v
}
