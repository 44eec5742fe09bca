package chdb_test

import (
	"bytes"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestATakenPortIsToldOnceAndClearly(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	addr := taken.Addr().String()
	var log bytes.Buffer
	_, err = chdb.Start(t.Context(), chdb.Config{
		Name: "history", Addr: addr, DataDir: t.TempDir(), LibPath: chdbtest.Library(t), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.EqualError(t, err, "the history engine can't listen on "+addr+": the address is in use; stop the other process or pass --free-ports")
	require.ErrorIs(t, err, chdb.ErrInUse)
	require.NotContains(t, log.String(), "level=WARN", "the error says it all")
}
