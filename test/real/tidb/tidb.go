// Package tidb starts a real TiDB 7.5 for a test: its SQL layer over a store in memory, in a process of the test's own. It is built
// from source on first use, which takes ten minutes on two idle cores, and is kept in the user's cache folder.
package tidb

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/test/ports"
	"github.com/pointsman/pointsman/test/real/process"
)

// User is the superuser, who needs no password.
const User = "root"

// Server is a running TiDB.
type Server struct {
	*process.Process

	Addr string
	t    testing.TB
}

// Start builds the server if need be, starts it and waits until it answers.
func Start(t testing.TB) *Server {
	t.Helper()
	binary := build(t)
	as := process.As{} // TiDB runs as anybody
	dir := as.Folder(t)
	port := ports.Free(t)
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), t: t}
	s.Process = as.Start(t, dir, binary, "-port", strconv.Itoa(port))
	s.Ready(func() error {
		db, err := sql.Open("mysql", s.DSN(""))
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	})
	s.Exec("CREATE DATABASE IF NOT EXISTS work")
	return s
}

// DSN is the data source name of a database.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("%s@tcp(%s)/%s?timeout=2s", User, s.Addr, database)
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

// build gives the server's binary.
func build(t testing.TB) string {
	t.Helper()
	_, source, _, ok := runtime.Caller(0)
	require.True(t, ok && filepath.IsAbs(source), "the place of the source is unknown: build tests without -trimpath")
	folder := filepath.Join(filepath.Dir(source), "server")
	sum := sha256.New()
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		sum.Write(text)
	}
	cache := os.Getenv("POINTSMAN_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		require.NoError(t, err)
		cache = filepath.Join(base, "pointsman")
	}
	binary := filepath.Join(cache, "tidb", hex.EncodeToString(sum.Sum(nil))[:16], "tidb")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	t.Logf("building TiDB into %s: this takes ten minutes or more", binary)
	// Its dependencies reach into the runtime in ways that newer linkers refuse.
	cmd := exec.Command("go", "build", "-ldflags=-checklinkname=0 -s -w", "-o", binary+".new", ".")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Rename(binary+".new", binary))
	return binary
}
