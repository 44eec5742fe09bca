package stream

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuietDemotesInfoOnly(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(quiet{slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelInfo})}).With("a", 1).WithGroup("g")
	log.Info("chatter")
	require.Empty(t, b.String())
	log.Warn("trouble", "b", 2)
	require.Contains(t, b.String(), "level=WARN msg=trouble a=1 g.b=2")

	b.Reset()
	slog.New(quiet{slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})}).Info("chatter")
	require.Contains(t, b.String(), "level=DEBUG msg=chatter")
}
