package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// checkpoints forgets and commits from time to time, so that memory stays bounded and a new owner has little to read.
func (l *Ledger) checkpoints(ctx context.Context) {
	t := time.NewTicker(l.lc.CheckpointEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.lost:
			return
		case <-t.C:
			if err := l.Checkpoint(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, ErrLeaseLost) {
				l.deps.log().WarnContext(ctx, "ledger checkpoint", "topic", l.lc.Topic, "partition", l.lc.Partition, "error", err)
			}
		}
	}
}

// Checkpoint forgets the Tasks that are over and commits where a new owner may start. The commit never goes back: any anchor that a fold
// has named is sound for ever, but an older one means more to read.
func (l *Ledger) Checkpoint(ctx context.Context) error {
	before := l.BrokerNow().Add(-l.lc.Slack)
	l.mu.Lock()
	if l.lostErr != nil {
		defer l.mu.Unlock()
		return l.lostErr
	}
	l.fold.Forget(before)
	l.dropDeep()
	anchor, saved := l.fold.Checkpoint(), l.saved
	l.mu.Unlock()
	if anchor.Offset <= saved {
		return nil
	}
	metadata, err := json.Marshal(anchor)
	if err != nil {
		return fmt.Errorf("encoding the ledger's checkpoint: %w", err)
	}
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: l.topic, Partition: l.lc.Partition, At: anchor.Offset, LeaderEpoch: -1, Metadata: string(metadata)})
	if err := l.admin.CommitAllOffsets(ctx, l.anchorGroup(), offsets); err != nil {
		return fmt.Errorf("committing the ledger's checkpoint: %w", err)
	}
	l.mu.Lock()
	l.saved = max(l.saved, anchor.Offset)
	l.mu.Unlock()
	return nil
}
