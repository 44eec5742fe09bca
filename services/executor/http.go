package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/pointsman/pointsman/pkg/telemetry"
)

// health says when the executor can do its work. An engine that is down is no reason to take the executor out: its attempts
// are moved on.
func (a *App) health(tel *telemetry.Telemetry) {
	a.ready = tel.Health.Gate("partitions", "no partitions assigned yet")
	tel.Health.Check("kafka", func(ctx context.Context) error { return a.producer.Ping(ctx) })
	tel.Health.Check("decisions", func(context.Context) error {
		if n := a.consumer.Lost(); n > 0 {
			return fmt.Errorf("%d decisions were deleted before they were read", n)
		}
		return nil
	})
	tel.Health.Check("slots", func(context.Context) error { return a.slots.Err() })
	if len(a.cfg.Engines) == 0 {
		tel.Health.Check("engines", func(context.Context) error { return errors.New("no engine is configured") })
	}
}
