package stream

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The log lost its end (an unclean election): the client goes back to 50 and reads what was written anew at 50 to 99.
func TestTruncatedLogIsReadAnew(t *testing.T) {
	group := DefaultConsumerConfig("g", "requests")
	group.OnLoss = LossResume
	c, err := NewConsumer(DefaultConfig(), Deps{}, group, nil)
	require.NoError(t, err)
	k := partitionKey{"requests", 0}
	p := newPartition(c, nil, k)
	p.started, p.tracker = true, newTracker(90, 90)
	c.parts[k] = p
	var old []*kgo.Record
	for o := int64(90); o < 100; o++ {
		old = append(old, &kgo.Record{Topic: "requests", Offset: o, LeaderEpoch: 1})
	}
	p.deliver(old)

	lost := kgo.FetchError{Topic: "requests", Err: &kgo.ErrDataLoss{Topic: "requests", ConsumedTo: 100, ResetTo: 50}}
	require.False(t, c.fetchError(t.Context(), nil, lost))
	require.Empty(t, p.queue, "what is gone is not handed on")
	require.Equal(t, int64(50), c.Lost())
	var anew []*kgo.Record
	for o := int64(50); o < 100; o++ {
		anew = append(anew, &kgo.Record{Topic: "requests", Offset: o, LeaderEpoch: 2})
	}
	p.deliver(anew)
	require.Equal(t, anew, p.queue)
	p.Done(old...)
	require.Equal(t, 50, p.tracker.span(), "one that is gone finishes none in its place")
	p.Done(anew...)
	at, _, ok := p.tracker.toCommit()
	require.True(t, ok)
	require.Equal(t, int64(100), at)
}

// If a person is to decide, the group stays where it is until one has.
func TestTruncatedLogStops(t *testing.T) {
	c, err := NewConsumer(DefaultConfig(), Deps{}, DefaultConsumerConfig("g", "requests"), nil)
	require.NoError(t, err)
	k := partitionKey{"requests", 0}
	p := newPartition(c, nil, k)
	p.started, p.tracker = true, newTracker(100, 100)
	c.parts[k] = p
	require.False(t, c.fetchError(t.Context(), nil, kgo.FetchError{Topic: "requests", Err: &kgo.ErrDataLoss{ConsumedTo: 100, ResetTo: 50}}))
	require.ErrorContains(t, c.fatal, "records 50 to 99")
	_, _, ok := p.tracker.toCommit()
	require.False(t, ok)
}
