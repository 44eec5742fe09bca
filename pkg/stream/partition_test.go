package stream

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What is finished behind a record that is not has a bound of its own, for all of it is read again after a crash.
func TestPausesFarBehind(t *testing.T) {
	c, err := NewConsumer(DefaultConfig(), Deps{}, DefaultConsumerConfig("g", "t"), nil)
	require.NoError(t, err)
	cl, err := NewClient(DefaultConfig(), Deps{}, "test")
	require.NoError(t, err)
	defer cl.Close()
	p := newPartition(c, cl, partitionKey{"t", 0})
	p.started, p.tracker = true, newTracker(-1, 0)

	const start = 5_000_000 // a log whose start is far from 0 is not behind for that
	slow := &kgo.Record{Topic: "t", Offset: start}
	p.deliver([]*kgo.Record{slow})
	recs := make([]*kgo.Record, 1000)
	next := int64(start + 1)
	for !p.paused && next < start+2*maxBehind {
		for i := range recs {
			recs[i] = &kgo.Record{Topic: "t", Offset: next}
			next++
		}
		p.deliver(recs)
		p.Done(recs...)
		p.take()
		p.queue = nil
	}
	require.InDelta(t, start+maxBehind, next, 1001)
	require.Equal(t, map[string][]int32{"t": {0}}, cl.PauseFetchPartitions(nil))
	p.Done(slow)
	require.False(t, p.paused)
	require.Empty(t, cl.PauseFetchPartitions(nil))
}
