// Package postgres starts a real PostgreSQL for a test, on a free loopback port, in a process of the test's own.
package postgres

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/test/ports"
	"github.com/pointsman/pointsman/test/real/process"
)

// User is the superuser, who needs no password.
const User = "postgres"

// Server is a running PostgreSQL.
type Server struct {
	*process.Process

	Addr string
	data string
	t    testing.TB
}

// Start makes a cluster of databases, starts its server and waits until it answers. settings are name=value.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	const folders = "/usr/lib/postgresql/*/bin"
	initdb := process.Binary(t, "postgresql", "initdb", folders)
	postgres := process.Binary(t, "postgresql", "postgres", folders)
	as := process.User(t, "postgresql", "postgres")
	dir := as.Folder(t)
	data := filepath.Join(dir, "data")
	as.Run(t, dir, initdb, "-D", data, "-A", "trust", "-U", User, "--no-sync", "-E", "UTF8", "--locale=C")
	port := ports.Free(t)
	args := []string{"-D", data, "-p", strconv.Itoa(port)}
	for _, s := range append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "shared_buffers=64MB", "max_connections=60",
	}, settings...) {
		args = append(args, "-c", s)
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), data: data, t: t}
	s.Process = as.Start(t, dir, postgres, args...)
	s.AwaitReady()
	return s
}

// URL is the connection string of the database postgres.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://%s@%s/postgres?sslmode=disable", User, s.Addr)
}

// AwaitReady waits until the server runs a statement.
func (s *Server) AwaitReady() {
	s.t.Helper()
	s.Ready(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		return conn.Ping(ctx)
	})
}

// Restart ends the server, with all that runs there, and starts it again on its data.
func (s *Server) Restart() {
	s.t.Helper()
	s.End(syscall.SIGINT)
	s.Again()
	s.AwaitReady()
}

// Admit puts a line at the head of the server's rules of who may connect and how.
func (s *Server) Admit(rule string) {
	s.t.Helper()
	file := filepath.Join(s.data, "pg_hba.conf")
	rules, err := os.ReadFile(file)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(file, append([]byte(rule+"\n"), rules...), 0o600))
	s.Exec("SELECT pg_reload_conf()")
	time.Sleep(100 * time.Millisecond) // the postmaster reads it when it gets to it
}

// Exec runs statements as the superuser, over a connection of its own.
func (s *Server) Exec(statements ...string) {
	s.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL())
	require.NoError(s.t, err)
	defer conn.Close(ctx)
	for _, sql := range statements {
		_, err = conn.Exec(ctx, sql)
		require.NoError(s.t, err, sql)
	}
}
