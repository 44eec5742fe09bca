package spark_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes a client that is closed at the test's end.
func open(t *testing.T, cfg spark.Config) engine.Engine {
	t.Helper()
	e, err := spark.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}
