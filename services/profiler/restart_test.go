package profiler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/pointsman/pointsman/pkg/event"
)

// A profiler that dies after its inserts and before its commits leaves everything to be read again, and nothing counts twice.
func TestDeathBetweenInsertAndCommit(t *testing.T) {
	b := newBench(t)
	fault := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorNotAvailable, Count: -1})
	b.live(0, 50)
	_, stop := b.start(b.cfg)
	b.eventually(50, "SELECT count() FROM outcomes FINAL")
	b.eventually(60, "SELECT count() FROM decisions FINAL")
	b.eventually(180, "SELECT count() FROM attempts FINAL")
	b.eventually(50, "SELECT sum(n30) FROM v_sla_hit_rate")
	stop()
	require.Positive(t, fault.Hits())
	fault.Remove()
	for p := range int32(partitions) {
		require.EqualValues(t, -1, b.broker.Offset(t, "profiler", event.TopicOutcomes, p))
	}
	b.live(50, 10)
	b.start(b.cfg)
	b.caughtUp()
	require.EqualValues(t, 60, b.count("SELECT count() FROM outcomes FINAL"))
	require.EqualValues(t, 0, b.count("SELECT toUInt64(sum(conflicting)) FROM v_pipeline_health"))
	b.eventually(60, "SELECT sum(n30) FROM v_sla_hit_rate")
	b.eventually(12, "SELECT sum(memory_kills) FROM attempt_1h FINAL")
}

// Two profilers share the partitions, come and go, and the counts are those of the topics.
func TestProfilersThatComeAndGo(t *testing.T) {
	b := newBench(t)
	b.several = true
	b.live(0, 40)
	_, stopA := b.start(b.cfg)
	b.live(40, 40)
	_, stopB := b.start(b.cfg)
	b.live(80, 40)
	time.Sleep(200 * time.Millisecond) // somewhere in the middle of the hand-over
	stopA()
	b.live(120, 40)
	b.start(b.cfg)
	b.live(160, 40)
	stopB()
	b.caughtUp()
	for query, want := range map[string]uint64{
		"SELECT count() FROM requests FINAL":                       200,
		"SELECT count() FROM decisions FINAL":                      240,
		"SELECT count() FROM attempts FINAL":                       720,
		"SELECT count() FROM outcomes FINAL":                       200,
		"SELECT toUInt64(sum(conflicting)) FROM v_pipeline_health": 0,
	} {
		require.Equal(t, want, b.count(query), query)
	}
	b.eventually(200, "SELECT sum(n30) FROM v_sla_hit_rate")
	require.Empty(t, b.deadLetters())
}

// A crash right after the marks were set leaves them to the next profiler.
func TestMarkedHoursAreRolledUpAtTheStart(t *testing.T) {
	b := newBench(t)
	_, stop := b.start(b.cfg)
	b.caughtUp()
	b.eventually(0, "SELECT count() FROM dirty_hours")
	stop()
	require.NoError(t, b.db.Conn().Exec(t.Context(), "INSERT INTO dirty_hours (hour) VALUES (toStartOfHour(now('UTC')))"))
	b.start(b.cfg)
	b.eventually(1, "SELECT count() FROM rollup_rev FINAL")
}
