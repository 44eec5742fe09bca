package wire_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine/wire"
)

func TestHostPort(t *testing.T) {
	host, port, err := wire.HostPort("[::1]:3306")
	require.NoError(t, err)
	require.Equal(t, []string{"::1", "3306"}, []string{host, port})
	for _, bad := range []string{"", "db", "db:", "db:mysql", "db:70000", "a:1,b:2"} {
		_, _, err := wire.HostPort(bad)
		require.ErrorContains(t, err, "must be host:port", "%q", bad)
	}
}

func TestCountWaitsForWhatIsBeingClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c wire.Count
		c.Opened()
		time.AfterFunc(295*time.Millisecond, c.Closed)
		began := time.Now()
		c.Wait()
		require.Equal(t, 300*time.Millisecond, time.Since(began))
		c.Opened()
		c.Wait()
		require.Equal(t, 1300*time.Millisecond, time.Since(began), "it is not waited for for ever")
	})
}
