package executor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/services/executor"
)

func TestVariants(t *testing.T) {
	require.Empty(t, executor.EngineConfig{
		Queues: map[string]executor.QueueConfig{"capped": {Cap: 3}}, Resources: map[string]executor.Limits{"plain": {}},
	}.Variants(), "what sets nothing needs no trying")

	got := executor.EngineConfig{
		Limits:    executor.Limits{Settings: map[string]string{"a": "1", "b": "1"}},
		Queues:    map[string]executor.QueueConfig{"etl": {Settings: map[string]string{"b": "2"}}},
		Resources: map[string]executor.Limits{"big": {MaxMemory: 5}},
	}.Variants()
	require.Equal(t, map[string]executor.Limits{
		"limits":        {Settings: map[string]string{"a": "1", "b": "1"}},
		"queue etl":     {Settings: map[string]string{"a": "1", "b": "2"}},
		"resources big": {MaxMemory: 5, Settings: map[string]string{"a": "1", "b": "1"}},
	}, got)
}
