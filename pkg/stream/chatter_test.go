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
	log := Deps{Log: textLog(&b, slog.LevelInfo)}.Chatter().With("a", 1).WithGroup("g")
	log.Info("chatter")
	require.Empty(t, b.String())
	log.Warn("trouble", "b", 2)
	require.Contains(t, b.String(), "level=WARN msg=trouble a=1 g.b=2")

	b.Reset()
	Deps{Log: textLog(&b, slog.LevelDebug)}.Chatter().Info("chatter")
	require.Contains(t, b.String(), "level=DEBUG msg=chatter")
}

func TestChatterSaysTheSameOnceInAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		deps := Deps{Log: Calm(textLog(&b, slog.LevelDebug)).With("service", "x")}
		clients := []*slog.Logger{deps.Chatter(), deps.Chatter().With("client", 2)} // two of one process
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

func TestChatterHidesNothingOfAnother(t *testing.T) {
	var b bytes.Buffer
	log := Deps{Log: textLog(&b, slog.LevelInfo)}.Chatter()
	for range 3 {
		log.Error("unable to initialize sasl", "broker", 1, "err", "refused")
		log.Error("unable to initialize sasl", "broker", 2, "err", "refused")
		log.Warn("join group failed", "group", "router", "err", "not authorized")
		log.Warn("join group failed", "group", "executor", "err", "not authorized")
		for partition := range 2 {
			log.Warn("reading from kafka", "group", "router", "topic", "requests", "partition", partition)
			log.Warn("reading from kafka", "group", "router", "topic", "decisions", "partition", partition)
		}
		for seed := range 2 { // of one address
			log.Warn("unable to open connection", "addr", "a:1", "broker", fmt.Sprint("seed_", seed))
		}
	}
	got := b.String()
	for what, times := range map[string]int{
		"broker=1": 1, "broker=2": 1, "group=router err": 1, "group=executor err": 1, "topic=requests": 1, "topic=decisions": 1, "addr=a:1": 1,
	} {
		require.Equal(t, times, strings.Count(got, what), "%s\n%s", what, got)
	}
}
