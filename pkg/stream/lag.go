package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Lag is what a group has not finished of one partition.
type Lag struct {
	Group     string
	Topic     string // both without prefix
	Partition int32
	Start     int64
	End       int64 // for a reader of committed records
	Committed int64 // valid if HasCommit
	HasCommit bool
	// Records is how many records are left, valid if Err is nil. Without a commit it counts from the log's start: records that
	// retention has taken are not waiting for anybody.
	Records int64
	Err     error
}

// Lags returns the lag of a group on topics. Groups of this package commit past transaction markers, so their lag reaches zero.
// A partition whose lag can't be known is in the list with Err; TotalLag does not add it up as if it were a number.
func Lags(ctx context.Context, cfg Config, cl *kgo.Client, group string, topics ...string) ([]Lag, error) {
	admin := kadm.NewClient(cl)
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = cfg.Topic(t)
	}
	starts, err := admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("lag of %s: %w", group, err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("lag of %s: %w", group, err)
	}
	commits, err := admin.FetchOffsets(ctx, cfg.Group(group))
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("lag of %s: %w", group, err)
	}
	var lags []Lag
	ends.Each(func(end kadm.ListedOffset) {
		start, ok := starts.Lookup(end.Topic, end.Partition)
		l := Lag{
			Group: group, Topic: cfg.Name(end.Topic), Partition: end.Partition, Start: start.Offset, End: end.Offset,
			Err: errors.Join(start.Err, end.Err),
		}
		if !ok {
			l.Err = errors.Join(l.Err, kerr.UnknownTopicOrPartition)
		}
		from := l.Start
		if c, ok := commits.Lookup(end.Topic, end.Partition); ok && c.At >= 0 {
			l.Err = errors.Join(l.Err, c.Err)
			l.Committed, l.HasCommit = c.At, true
			from = max(from, c.At)
		}
		if l.Err == nil {
			l.Records = max(0, l.End-from)
		}
		lags = append(lags, l)
	})
	slices.SortFunc(lags, func(a, b Lag) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return lags, nil
}

// TotalLag adds lags up. unknown is how many partitions are not in the sum.
func TotalLag(lags []Lag) (records int64, unknown int) {
	for _, l := range lags {
		if l.Err != nil {
			unknown++
			continue
		}
		records += l.Records
	}
	return records, unknown
}
