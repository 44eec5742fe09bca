package secure_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine/wire/secure"
	"github.com/pointsman/pointsman/test/authority"
)

func trusting(t *testing.T, a *authority.Authority, name string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(a.File)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(pem))
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ServerName: name}
}

// answering is a server that answers the first bytes of each client with the same.
func answering(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = io.WriteString(c, answer)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestExplainSaysWhatToDo(t *testing.T) {
	ca := authority.New(t)
	soon := time.Now().Add(time.Hour)
	good := authority.Front(t, ca.Certificate(t, soon, "db.internal", "127.0.0.1"), answering(t, "hello"))
	old := authority.Front(t, ca.Certificate(t, time.Now().Add(-time.Minute), "db.internal"), answering(t, "hello"))
	demanding, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ca.Certificate(t, soon, "db.internal")}, ClientAuth: tls.RequireAnyClientCert,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = demanding.Close() })
	go func() {
		for {
			c, err := demanding.Accept()
			if err != nil {
				return
			}
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
	}()
	for name, c := range map[string]struct {
		addr string
		cfg  *tls.Config
		want string
	}{
		"all is well":           {good, trusting(t, ca, "db.internal"), ""},
		"an unknown authority":  {good, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "db.internal"}, "name the file with that authority's certificate as ca=…"},
		"another authority":     {good, trusting(t, authority.New(t), "db.internal"), "name the file with that authority's certificate as ca=…"},
		"another name":          {good, trusting(t, ca, "db"), "is not for db but for db.internal, 127.0.0.1"},
		"an old certificate":    {old, trusting(t, ca, "db.internal"), "has expired"},
		"a server without TLS":  {answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), trusting(t, ca, "db.internal"), "does not speak TLS at this port"},
		"a server of another":   {answering(t, "J\x00\x00\x00\x0a10.11\x00"), trusting(t, ca, "db.internal"), "does not speak TLS at this port"},
		"a client that is none": {demanding.Addr().String(), trusting(t, ca, "db.internal"), "may want a certificate of the client"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", c.addr, c.cfg)
			err = secure.Explain(err, "ca")
			if c.want == "" {
				require.NoError(t, err)
				require.NoError(t, conn.Close())
				return
			}
			require.ErrorContains(t, err, c.want)
			require.True(t, secure.Failed(err))
			require.Equal(t, err, secure.Explain(err, "ca"), "once is enough")
		})
	}
	for _, other := range []error{nil, io.EOF, context.Canceled, errors.New("table not found")} {
		require.Equal(t, other, secure.Explain(other, "ca"))
		require.False(t, secure.Failed(other))
	}
}

func TestPlainHearsAServerThatWantsTLS(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"an alert":         {"\x15\x03\x01\x00\x02\x02\x46", "say so in the engine's URL"},
		"without a word":   {"", "as one does that wants TLS"},
		"an answer":        {"hello", ""},
		"almost an alert":  {"\x15\x01", ""},
		"an alert, behind": {"hello \x15\x03\x01", ""},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := net.Dial("tcp", answering(t, c.answer))
			require.NoError(t, err)
			conn := secure.Plain(raw)
			defer conn.Close()
			_, err = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
			require.NoError(t, err)
			got, err := io.ReadAll(conn)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.Empty(t, got)
				return
			}
			require.NoError(t, err, "the end of what was heard is no failure")
			require.Equal(t, c.answer, string(got))
		})
	}
}

// TestPlainUnderHTTP says that the explanation comes through Go's own transport.
func TestPlainUnderHTTP(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = false
	server.StartTLS()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return secure.Plain(conn), nil
	}, DisableKeepAlives: true}}
	alert := answering(t, "\x15\x03\x01\x00\x02\x02\x46")
	_, err := client.Get("http://" + alert)
	require.True(t, secure.Failed(err), "%v", err)
	resp, err := client.Get(strings.Replace(server.URL, "https", "http", 1))
	require.NoError(t, err, "Go's own servers have a word for it")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	_ = resp.Body.Close()
}
