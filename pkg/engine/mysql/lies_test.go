package mysql_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/mysql"
	"github.com/pointsman/pointsman/pkg/engine/mysql/familytest"
)

// columns is the head of a result that is said to have as many columns.
func columns(count uint64) []byte {
	return append([]byte{9, 0, 0, 1, 0xfe}, binary.LittleEndian.AppendUint64(nil, count)...)
}

// TestServersThatLie: a class, a message, a bounded wait and bounded memory, whatever the answer says of itself.
func TestServersThatLie(t *testing.T) {
	srv := familytest.Start(t, servers[0].traits)
	g := enginetest.NewGate(t, srv.Addr)
	for name, c := range map[string]struct {
		reply   []byte
		message string
	}{
		"ten million columns":     {columns(10_000_000), "more columns"},
		"columns without end":     {columns(1 << 63), "more columns"},
		"a count of three bytes":  {[]byte{4, 0, 0, 1, 0xfd, 0, 0, 2}, "more columns"},
		"a packet of no length":   {[]byte{0, 0, 0, 1}, ""},
		"an error without a code": {[]byte{1, 0, 0, 1, 0xff}, ""},
		"a result cut short":      {[]byte{1, 0, 0, 1, 1, 3, 0, 0, 2, 0xfc, 0xff, 0xff}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g.Set(enginetest.Fault{Marker: "marked", Reply: c.reply})
			e := client(t, mysql.Config{Addr: g.Addr, Spares: -1})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			ended := make(chan error, 1)
			go func() {
				_, err := e.Submit(t.Context(), engine.Query{ID: "lie/1", SQL: "SELECT 1 -- marked"})
				ended <- err
			}()
			var err error
			select {
			case err = <-ended:
			case <-time.After(time.Second): // it waits for more, as for any slow query: the engine's client can be closed
				require.NoError(t, e.Close())
				err = <-ended
			}
			runtime.ReadMemStats(&after)
			var said *engine.Error
			require.ErrorAs(t, err, &said)
			require.Equal(t, engine.SentUnknown, said.Phase)
			require.NotEmpty(t, said.Error())
			require.Contains(t, said.Error(), c.message)
			require.Less(t, time.Since(began), 3*time.Second)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
		})
	}
}
