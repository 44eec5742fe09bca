//go:build real

package engines_test

import (
	"os"
	"os/user"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engines"
	"github.com/pointsman/pointsman/test/authority"
	"github.com/pointsman/pointsman/test/real/mariadb"
	"github.com/pointsman/pointsman/test/real/postgres"
	"github.com/pointsman/pointsman/test/real/spark"
	"github.com/pointsman/pointsman/test/real/trino"
)

// files are a certificate for 127.0.0.1 and its key, that only the user whom the server runs as may read.
func files(t *testing.T, ca *authority.Authority, name string) (cert, key string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pointsman-tls-") //nolint:usetesting // the server's user must get into it: t.TempDir is for its owner
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cert, key = authority.Files(t, ca.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1"), dir)
	if os.Getuid() != 0 {
		return cert, key
	}
	u, err := user.Lookup(name)
	if err != nil {
		return cert, key // the server's start says what is missing
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	for _, file := range []string{dir, cert, key} {
		require.NoError(t, os.Chown(file, uid, gid))
	}
	return cert, key
}

func TestTLSOfPostgreSQL(t *testing.T) {
	ca := authority.New(t)
	cert, key := files(t, ca, "postgres")
	with := postgres.Start(t, "ssl=on", "ssl_cert_file="+cert, "ssl_key_file="+key)
	overTLS{
		cfg:    engines.Config{Kind: "postgres", User: postgres.User, Database: "postgres"},
		secure: "postgres://HOST?sslmode=verify-full&sslrootcert=CA", systems: "postgres://HOST?sslmode=verify-full", plain: "postgres://HOST?sslmode=disable",
		slow: "SELECT pg_sleep(60)", authority: ca, with: with.Addr, without: postgres.Start(t).Addr, talks: true,
	}.exercise(t)
	with.Admit("hostnossl all all 127.0.0.1/32 reject")
	t.Run("a server that takes nobody without TLS", func(t *testing.T) {
		s := overTLS{cfg: engines.Config{Kind: "postgres", User: postgres.User, Database: "postgres"}, authority: ca}
		err := enginetest.End(t.Context(), s.open(t, "postgres://HOST?sslmode=disable", with.Addr), engine.Query{ID: "tls/4", SQL: "SELECT 1", ReadOnly: true})
		require.ErrorContains(t, err, "no encryption", "the server's own word")
		require.NoError(t, enginetest.End(t.Context(), s.open(t, "postgres://HOST", with.Addr), engine.Query{ID: "tls/5", SQL: "SELECT 1", ReadOnly: true}), "TLS is preferred where the URL says nothing")
	})
}

func TestTLSOfMariaDB(t *testing.T) {
	ca := authority.New(t)
	cert, key := files(t, ca, "mysql")
	with := mariadb.Start(t, "--ssl-cert="+cert, "--ssl-key="+key)
	s := overTLS{
		cfg:    engines.Config{Kind: "mysql", User: mariadb.User, Database: "work"},
		secure: "mysql://HOST?tls=true&ca=CA", systems: "mysql://HOST?tls=true", plain: "mysql://HOST",
		slow: "SELECT SLEEP(60)", authority: ca, with: with.Addr, without: mariadb.Start(t).Addr, talks: true,
	}
	s.exercise(t)
	t.Run("without a check", func(t *testing.T) {
		require.NoError(t, enginetest.End(t.Context(), s.open(t, "mysql://HOST?tls=skip-verify", with.Addr), engine.Query{ID: "tls/6", SQL: "SELECT 1", ReadOnly: true}))
	})
	with.Exec("SET GLOBAL require_secure_transport = ON")
	t.Run("a server that takes nobody without TLS", func(t *testing.T) {
		err := enginetest.End(t.Context(), s.open(t, s.plain, with.Addr), engine.Query{ID: "tls/4", SQL: "SELECT 1", ReadOnly: true})
		require.ErrorContains(t, err, "a server that takes nobody without TLS says this too", "MariaDB's own word is that the access is denied")
	})
}

func TestTLSOfTrino(t *testing.T) {
	server := trino.Start(t)
	ca := authority.New(t)
	overTLS{
		cfg:    engines.Config{Kind: "trino", User: "tls", Database: "tpch.tiny"},
		secure: "https://HOST?ca=CA", systems: "https://HOST", plain: "http://HOST",
		slow:      "SELECT count(*) FROM tpch.sf1.lineitem a CROSS JOIN tpch.sf1.orders b",
		authority: ca, without: server.Addr,
		with: authority.Front(t, ca.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1"), server.Addr),
	}.exercise(t)
}

func TestTLSOfSpark(t *testing.T) {
	server := spark.Start(t)
	ca := authority.New(t)
	overTLS{
		cfg:    engines.Config{Kind: "spark", User: "tls"},
		secure: "sc://HOST?tls=true&ca=CA", systems: "sc://HOST?tls=true", plain: "sc://HOST",
		slow:      "SELECT count(*) FROM range(100000000000) WHERE id % 7 = 3",
		authority: ca, without: server.Addr,
		with: authority.Front(t, ca.Certificate(t, time.Now().Add(time.Hour), "127.0.0.1"), server.Addr, "h2"),
	}.exercise(t)
}
