//go:build real

package postgres_test

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/enginetest"
	"github.com/pointsman/pointsman/pkg/engine/postgres"
	real "github.com/pointsman/pointsman/test/real/postgres"
)

// message is one of the server's, whose length is as it should be.
func message(kind byte, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// TestServersThatLie: a class, a message, a bounded wait and bounded memory, whatever the answer says of itself.
func TestServersThatLie(t *testing.T) {
	g := enginetest.NewGate(t, real.Start(t).Addr)
	parsed := slices.Concat(message('1'), message('t', 0, 0))
	most := slices.Concat([]byte{0xff, 0xff}, make([]byte, 65535*19))
	for name, reply := range map[string][]byte{
		"as many columns as can be announced, and none of them": slices.Concat(parsed, message('T', 0xff, 0xff)),
		"as many columns as can be announced, of nothing":       slices.Concat(parsed, message('T', most...), message('D', 0xff, 0xff)),
		"a message of two gigabytes":                            slices.Concat(parsed, []byte{'T', 0x7f, 0xff, 0xff, 0xff}),
		"a message of no length":                                slices.Concat(parsed, []byte{'T', 0, 0, 0, 0}),
		"a message that nobody knows":                           slices.Concat(parsed, message('?', 1, 2, 3)),
		"rows without columns":                                  slices.Concat(parsed, message('D', 0, 1, 0, 0, 0, 1, 'x')),
		"an error without a code":                               slices.Concat(parsed, message('E', 0)),
		"a login in the middle":                                 slices.Concat(parsed, message('R', 0, 0, 0, 3)),
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, postgres.Config{Name: "p", Addr: g.Addr, Spares: -1})
			g.Set(enginetest.Fault{Marker: "marked", Reply: reply})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			ended := make(chan error, 1)
			go func() {
				rows, err := e.Submit(t.Context(), engine.Query{ID: "lie/1", SQL: "SELECT 1 -- marked"})
				if err == nil {
					for rows.Next() {
					}
					err = rows.Err()
				}
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
			require.NotEmpty(t, said.Error())
			want := engine.SentUnknown
			if name == "an error without a code" {
				want = engine.Answered
			}
			require.Equal(t, want, said.Phase, "%v", said)
			require.Less(t, time.Since(began), 3*time.Second)
			require.Less(t, after.HeapInuse, before.HeapInuse+64<<20)
		})
	}
}
