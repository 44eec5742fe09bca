package command

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyWhatFollowsEndsWellWhenItIsStopped(t *testing.T) {
	for _, c := range []string{"up", "embedded", "topics tail <topic>", "tasks tail", "tasks tail <id>"} {
		require.True(t, follows(c), c)
	}
	for _, c := range []string{"migrate up", "topics apply", "dlq requeue", "replay", "policy test <files>", "updater"} {
		require.False(t, follows(c), c)
	}
}
