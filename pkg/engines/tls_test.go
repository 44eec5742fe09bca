package engines_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/flightsql/flightsqltest"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/test/authority"
)

// overTLS is one kind of engine at a server with TLS, whose certificate is for 127.0.0.1, and at one without.
type overTLS struct {
	cfg engines.Config // all but the URL
	// secure and plain are its URLs with and without TLS, and systems with TLS and the authorities of the system. HOST stands for
	// host and port, and CA for the authority's file.
	secure, systems, plain string
	slow                   string
	blind                  bool // it can't be asked for an attempt
	authority              *authority.Authority
	with, without          string // addresses
	// talks says that a server with TLS answers a client without, too.
	talks bool
}

func (s overTLS) open(t *testing.T, form, addr string) engine.Engine {
	t.Helper()
	cfg := s.cfg
	cfg.Name, cfg.Queries = "under-test", 1
	cfg.URL = strings.NewReplacer("HOST", addr, "CA", s.authority.File).Replace(form)
	e, err := engines.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// exercise runs a query and a cancel over TLS, and then all that client and server can disagree on.
func (s overTLS) exercise(t *testing.T) {
	t.Run("a query, a look-up and a cancel", func(t *testing.T) {
		e := s.open(t, s.secure, s.with)
		require.NoError(t, e.Canary(t.Context()))
		require.NoError(t, enginetest.End(t.Context(), e, engine.Query{ID: "tls/1", SQL: "SELECT 1", ReadOnly: true}))
		_, err := e.Observe(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- enginetest.End(ctx, e, engine.Query{ID: "tls/2", SQL: s.slow, ReadOnly: true}) }()
		state := func() engine.RunState {
			run, err := e.Find(t.Context(), "tls/2")
			require.NoError(t, err)
			return run.State
		}
		if s.blind {
			time.Sleep(300 * time.Millisecond)
		} else {
			require.Eventually(t, func() bool { return state() == engine.RunActive }, 20*time.Second, 20*time.Millisecond)
		}
		cancel()
		select {
		case err := <-ended:
			require.Error(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("the cancel did not come through")
		}
		if !s.blind {
			require.Eventually(t, func() bool { return state() != engine.RunActive }, 10*time.Second, 50*time.Millisecond)
		}
	})
	_, port, err := net.SplitHostPort(s.with)
	require.NoError(t, err)
	for _, c := range []struct {
		name, form, addr, says string
	}{
		{"an authority that nobody knows", s.systems, s.with, `signed by an authority ("the test's own authority") that is not trusted here: name the file`},
		{"another name", s.secure, net.JoinHostPort("localhost", port), "the server's certificate is not for localhost but for 127.0.0.1"},
		{"a server without TLS", s.secure, s.without, "the server does not speak TLS at this port"},
		{"a client without TLS", s.plain, s.with, "wants TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.form == s.plain && s.talks {
				require.NoError(t, enginetest.End(t.Context(), s.open(t, c.form, c.addr), engine.Query{ID: "tls/plain", SQL: "SELECT 1", ReadOnly: true}))
				return
			}
			e := s.open(t, c.form, c.addr)
			began := time.Now()
			err := enginetest.End(t.Context(), e, engine.Query{ID: "tls/3", SQL: "SELECT 1", ReadOnly: true})
			var failed *engine.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, engine.NotSent, failed.Phase)
			require.ErrorContains(t, failed, c.says)
			require.NotContains(t, failed.Error(), "tls/3")
			f := failure.Classify(failure.Report{Engine: failed.Engine, Code: failed.Code, Message: failed.Error(), Reach: failure.Reach(failed.Phase)})
			require.Equal(t, string(failure.ClusterDown), f.Class)
			require.Less(t, time.Since(began), 8*time.Second)
			t.Log(failed)

			_, err = e.Find(t.Context(), "tls/3")
			if !s.blind {
				require.ErrorContains(t, err, c.says)
			}
			require.ErrorContains(t, e.Canary(t.Context()), c.says)
		})
	}
}

func TestTLSOfClickHouse(t *testing.T) {
	server := chdbtest.Start(t, chdb.Config{Name: "under-test"})
	ca := authority.New(t)
	overTLS{
		cfg:    engines.Config{Kind: "clickhouse"},
		secure: "https://HOST?ca=CA", systems: "https://HOST", plain: "http://HOST",
		slow:      "SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1",
		authority: ca, without: server.Addr(),
		with: authority.Front(t, ca.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1"), server.Addr()),
	}.exercise(t)
}

func TestTLSOfFlightSQL(t *testing.T) {
	server := flightsqltest.Start(t, flightsqltest.Config{Engine: chdbtest.Start(t, chdb.Config{Name: "under-test"}).URL()})
	ca := authority.New(t)
	overTLS{
		cfg:    engines.Config{Kind: "flightsql"},
		secure: "grpc+tls://HOST?ca=CA", systems: "grpc+tls://HOST", plain: "grpc://HOST",
		slow:      "SELECT sum(sleepEachRow(0.1)) FROM numbers(300) SETTINGS max_block_size = 1",
		authority: ca, without: server.Addr(),
		with: authority.Front(t, ca.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1"), server.Addr(), "h2"),
	}.exercise(t)
}

func TestAnAuthorityThatCantBeRead(t *testing.T) {
	ca := authority.New(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	require.NoError(t, os.WriteFile(empty, []byte("nothing\n"), 0o600))
	for _, c := range []struct{ kind, url, want string }{
		{"trino", "https://c:8443?ca=" + ca.File, ""},
		{"spark", "sc://c:15002?tls=true&ca=" + ca.File, ""},
		{"trino", "https://c:8443?ca=/no/such/file.pem", "ca: open /no/such/file.pem"},
		{"mysql", "mysql://c:3306?tls=true&ca=" + empty, "holds no certificate in PEM"},
		{"trino", "http://c:8080?ca=" + ca.File, "a ca is given"},
		{"clickhouse", "http://c:8123?ca=" + ca.File, "a ca is given"},
		{"flightsql", "grpc://c:31337?ca=" + ca.File, "a ca is given"},
		{"spark", "sc://c:15002?ca=" + ca.File, "a ca is given"},
		{"mysql", "mysql://c:3306?tls=skip-verify&ca=" + ca.File, "a ca is given"},
	} {
		err := engines.Check(engines.Config{Kind: c.kind, URL: c.url, User: "u"})
		if c.want == "" {
			require.NoError(t, err, c.url)
			continue
		}
		require.ErrorContains(t, err, c.want, c.url)
		require.Equal(t, "url", engines.Key(err))
	}
}
