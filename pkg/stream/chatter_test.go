package stream

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func textLog(b *bytes.Buffer, l slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: l}))
}

func TestChatterDemotesInfoOnly(t *testing.T) {
	var b bytes.Buffer
	log := Deps{Log: textLog(&b, slog.LevelInfo)}.chatter().With("a", 1).WithGroup("g")
	log.Info("chatter")
	require.Empty(t, b.String())
	log.Warn("trouble", "b", 2)
	require.Contains(t, b.String(), "level=WARN msg=trouble a=1 g.b=2")

	b.Reset()
	Deps{Log: textLog(&b, slog.LevelDebug)}.chatter().Info("chatter")
	require.Contains(t, b.String(), "level=DEBUG msg=chatter")
}

func TestChatterSaysTheSameOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		deps := Deps{Log: Calm(textLog(&b, slog.LevelDebug)).With("service", "x")}
		clients := []*slog.Logger{deps.chatter(), deps.chatter().With("client", 2)} // two of one process
		for i := range 100 {
			clients[i%2].Warn("can't reach", "addr", "a:1", "err", i)
			if i%10 == 0 {
				clients[0].Warn("can't reach", "addr", "b:1", "err", i)
			}
			time.Sleep(time.Second)
		}
		got := b.String()
		require.Equal(t, 4, strings.Count(got, "addr=a:1"), got)
		require.Equal(t, 4, strings.Count(got, "addr=b:1"), "another broker is another matter")
		require.Contains(t, got, "addr=a:1 err=0\n")
		require.Contains(t, got, "addr=a:1 err=30 left_out=29\n")
		require.Contains(t, got, "addr=b:1 err=90 left_out=2\n")

		b.Reset()
		for i := range 10 {
			clients[0].Error(fmt.Sprint("failure ", i))
			clients[0].Debug("detail")
			deps.log().Warn("our own word", "n", i)
		}
		require.Equal(t, 10, strings.Count(b.String(), "failure"), "what is not the same is said")
		require.Equal(t, 10, strings.Count(b.String(), "detail"))
		require.Equal(t, 10, strings.Count(b.String(), "our own word"), "only chatter is left out")
	})
}
