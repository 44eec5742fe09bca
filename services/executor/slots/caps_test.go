package slots_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/executor/slots"
)

func TestText(t *testing.T) {
	require.Equal(t, "none", slots.Text(event.Caps{}))
	require.Equal(t, "cluster a 1, cluster b 2, queue etl of a 3, queue ui of a 4, tenant big 0, any other tenant 5", slots.Text(event.Caps{
		Clusters: map[string]int{"b": 2, "a": 1}, Queues: map[string]map[string]int{"a": {"ui": 4, "etl": 3}},
		Tenants: map[string]int{"big": 0}, Tenant: 5,
	}))
}
