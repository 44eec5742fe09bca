package stream_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/stream"
)

func TestPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		began, tries := time.Now(), 0
		require.NoError(t, stream.Persist(t.Context(), log, "counting", func(context.Context) error {
			tries++
			if time.Since(began) < time.Minute {
				return errors.New("unable to dial")
			}
			return nil
		}))
		require.Less(t, time.Since(began), time.Minute+10*time.Second, "it is tried often enough to be done soon after")
		require.Less(t, tries, 40, "and no oftener")
		require.Equal(t, tries-1, strings.Count(said.String(), "what=counting"))

		gone := errors.New("the partition has another owner")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		require.ErrorIs(t, stream.Persist(ctx, log, "counting", func(context.Context) error { return errors.New("unable to dial") }), gone)
	})
}
