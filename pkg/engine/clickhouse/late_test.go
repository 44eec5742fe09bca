package clickhouse

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
)

// The answer of a statement without a result comes as it is stopped: it was done, and whoever stopped it is told so.
func TestAnAnswerThatMeetsTheStop(t *testing.T) {
	unwanted := errors.New("unwanted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(unwanted)
	err := (&Engine{}).wrap(answer{}.orClosed(ctx).err, &submission{})
	require.ErrorIs(t, err, unwanted)
	require.ErrorIs(t, err, engine.ErrDone)
	killed := errors.New("killed")
	require.ErrorIs(t, answer{err: killed}.orClosed(ctx).err, killed, "the engine's own word")
}
