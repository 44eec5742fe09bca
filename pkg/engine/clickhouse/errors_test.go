package clickhouse

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
)

// TestOnlyARefusedConnectionSaysThatNobodyIsThere is what a look-up goes by: an engine that is slow to answer may still run the
// query.
func TestOnlyARefusedConnectionSaysThatNobodyIsThere(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, c := range []struct {
		name    string
		timeout time.Duration
		want    engine.Phase
	}{
		{"nobody listens", time.Second, engine.NotSent},
		{"the dial times out", time.Nanosecond, engine.SentUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := (&net.Dialer{Timeout: c.timeout}).DialContext(t.Context(), "tcp", closed.Addr().String())
			require.Error(t, err)
			require.Equal(t, c.want, (&Engine{}).wrap(err, nil).Phase, "%v", err)
		})
	}
	_, err = net.LookupIP("nowhere.invalid")
	require.Equal(t, engine.SentUnknown, (&Engine{}).wrap(err, nil).Phase, "a name that is not found is no refusal")
}
