package clickhouse_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/clickhouse"
	"github.com/pointsman/pointsman/test/authority"
)

// TestNativeTLS is TLS of the native protocol. That of HTTP is tested with that of all other engines, in pkg/engines.
func TestNativeTLS(t *testing.T) {
	plain := startServer(t)
	ca := authority.New(t)
	secure := authority.Front(t, ca.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1"), plain)
	pem, err := os.ReadFile(ca.File)
	require.NoError(t, err)
	known := x509.NewCertPool()
	require.True(t, known.AppendCertsFromPEM(pem))
	for _, c := range []struct {
		name, addr string
		cfg        *tls.Config
		want       string
	}{
		{"a query", secure, &tls.Config{RootCAs: known, ServerName: "127.0.0.1"}, ""},
		{"an authority that nobody knows", secure, &tls.Config{ServerName: "127.0.0.1"}, "ca=…"},
		{"another name", secure, &tls.Config{RootCAs: known, ServerName: "localhost"}, "is not for localhost"},
		{"a server without TLS", plain, &tls.Config{RootCAs: known, ServerName: "127.0.0.1"}, "does not speak TLS"},
		{"a client without TLS", secure, nil, "wants TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t, clickhouse.Config{Name: "c", Addrs: []string{c.addr}, Protocol: clickhouse.Native, User: "default", TLS: c.cfg, DialTimeout: 2 * time.Second})
			t.Cleanup(func() { _ = e.Close() })
			rows, err := e.Submit(t.Context(), engine.Query{ID: "native/1", SQL: "SELECT 1"})
			if c.want == "" {
				require.NoError(t, err)
				require.True(t, rows.Next())
				require.NoError(t, rows.Close())
				require.NoError(t, e.Canary(t.Context()))
				return
			}
			var failed *engine.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, engine.NotSent, failed.Phase)
			require.ErrorContains(t, failed, c.want)
			require.ErrorContains(t, e.Canary(t.Context()), c.want)
		})
	}
}
