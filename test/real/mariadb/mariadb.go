// Package mariadb starts a real MariaDB for a test, on a free loopback port, in a process of the test's own.
package mariadb

import (
	"database/sql"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/test/ports"
	"github.com/pointsman/pointsman/test/real/process"
)

// User is the superuser, who needs no password.
const User = "root"

// Server is a running MariaDB.
type Server struct {
	*process.Process

	Addr string
	t    testing.TB
}

// Start makes a data folder, starts a server and waits until it answers. settings are --name=value.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	install := process.Binary(t, "mariadb-server", "mariadb-install-db", "/usr/bin")
	mariadbd := process.Binary(t, "mariadb-server", "mariadbd")
	as := process.User(t, "mariadb-server", "mysql")
	dir := as.Folder(t)
	data := filepath.Join(dir, "data")
	as.Run(t, dir, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	port := ports.Free(t)
	args := append([]string{
		"--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1",
		"--socket=" + filepath.Join(dir, "s.sock"), "--pid-file=" + filepath.Join(dir, "pid"), "--innodb-buffer-pool-size=64M",
		"--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve",
	}, settings...)
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), t: t}
	s.Process = as.Start(t, dir, mariadbd, args...)
	s.AwaitReady()
	s.Exec("CREATE DATABASE IF NOT EXISTS work")
	return s
}

// DSN is the data source name of a database.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("%s@tcp(%s)/%s?timeout=2s", User, s.Addr, database)
}

// Open connects as the superuser, for what a test does beside the adapter.
func (s *Server) Open() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("mysql", s.DSN("work"))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}

// AwaitReady waits until the server runs a statement.
func (s *Server) AwaitReady() {
	s.t.Helper()
	s.Ready(func() error {
		db, err := sql.Open("mysql", s.DSN(""))
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	})
}

// Restart ends the server, with all that runs there, and starts it again on its data.
func (s *Server) Restart() {
	s.t.Helper()
	s.End(syscall.SIGTERM)
	s.Again()
	s.AwaitReady()
}

// Exec runs statements as the superuser.
func (s *Server) Exec(statements ...string) {
	s.t.Helper()
	db, err := sql.Open("mysql", s.DSN(""))
	require.NoError(s.t, err)
	defer db.Close()
	for _, q := range statements {
		_, err = db.Exec(q)
		require.NoError(s.t, err, q)
	}
}
