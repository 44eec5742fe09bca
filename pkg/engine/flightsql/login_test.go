package flightsql_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/flightsql"
	"github.com/pointsman/pointsman/pkg/engine/flightsql/flightsqltest"
	"github.com/pointsman/pointsman/pkg/failure"
)

// certificate is one for example.com, and who believes it.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	h := httptest.NewTLSServer(nil)
	defer h.Close()
	pool := x509.NewCertPool()
	pool.AddCert(h.Certificate())
	return &tls.Config{Certificates: h.TLS.Certificates, MinVersion: tls.VersionTLS12}, &tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12}
}

func TestLogin(t *testing.T) {
	serverTLS, clientTLS := certificate(t)
	server := flightsqltest.Start(t, flightsqltest.Config{
		Engine: chdbtest.Start(t, chdb.Config{Name: "locked"}).URL(), User: "pointsman", Password: "hunter2",
		Options: []grpc.ServerOption{grpc.Creds(credentials.NewTLS(serverTLS))},
	})
	cfg := flightsql.Config{Name: "f", Addr: server.Addr(), TLS: clientTLS, User: "pointsman", Password: "hunter2", DialTimeout: time.Second}
	e := open(t, cfg)
	defer func() { _ = e.Close() }()
	query := engine.Query{ID: "login/1", SQL: "SELECT 1", SubmitBefore: time.Now().Add(time.Minute)}
	for range 2 { // with a new token, and with one that is there
		rows, err := e.Submit(t.Context(), query)
		require.NoError(t, err)
		require.Len(t, numbers(t, rows), 1)
		require.NoError(t, rows.Err())
	}
	server.ForgetTokens()
	rows, err := e.Submit(t.Context(), query)
	require.NoError(t, err, "a token that the server has forgotten is renewed")
	require.Len(t, numbers(t, rows), 1)
	server.ForgetTokens()
	_, err = e.Find(t.Context(), "login/1")
	require.NoError(t, err)

	cfg.Password = "hunter3"
	wrong := open(t, cfg)
	defer func() { _ = wrong.Close() }()
	_, err = wrong.Submit(t.Context(), query)
	require.NotContains(t, failed(t, err, engine.NotSent, failure.Permission).Error(), "hunter")
	_, err = wrong.Find(t.Context(), "login/1")
	require.Error(t, err)

	cfg.User, cfg.Password = "", "no-such-token"
	token := open(t, cfg)
	defer func() { _ = token.Close() }()
	_, err = token.Submit(t.Context(), query)
	require.NotContains(t, failed(t, err, engine.Answered, failure.Permission).Error(), "no-such-token")

	cfg.TLS = nil
	_, err = flightsql.Open(cfg)
	require.ErrorIs(t, err, flightsql.ErrPassword)
}

// A server with TLS that is spoken to in the clear, or whose name is another one, has got nothing.
func TestNothingLeavesWithoutTheRightTLS(t *testing.T) {
	serverTLS, clientTLS := certificate(t)
	server := flightsqltest.Start(t, flightsqltest.Config{Engine: "http://127.0.0.1:1", Options: []grpc.ServerOption{grpc.Creds(credentials.NewTLS(serverTLS))}})
	clientTLS.ServerName = "elsewhere.com"
	for _, c := range []*tls.Config{nil, clientTLS} {
		e := open(t, flightsql.Config{Name: "f", Addr: server.Addr(), TLS: c, DialTimeout: time.Second})
		_, err := e.Submit(t.Context(), engine.Query{ID: "tls/1", SQL: "SELECT 1"})
		failed(t, err, engine.NotSent, failure.ClusterDown)
		require.NoError(t, e.Close())
	}
}
