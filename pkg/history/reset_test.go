package history_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/history"
	"github.com/pointsman/pointsman/pkg/history/historytest"
)

// resetter stands between a client and the engine. While armed it hands requests on, waits for the answer's first byte, and
// resets the connection instead of passing it back: the block is stored, and the client does not know.
type resetter struct {
	listener net.Listener
	upstream string
	armed    atomic.Bool
	resets   atomic.Int64
	wg       sync.WaitGroup
}

func newResetter(t *testing.T, upstream string) *resetter {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &resetter{listener: l, upstream: upstream}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close()
		r.wg.Wait()
	})
	return r
}

func (r *resetter) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.serve(c.(*net.TCPConn)) })
	}
}

func (r *resetter) serve(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	up, err := net.Dial("tcp", r.upstream)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	go func() {
		_, _ = io.Copy(up, client)
		_ = up.Close()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := up.Read(buf)
		if n > 0 && r.armed.Load() {
			r.resets.Add(1)
			_ = client.SetLinger(0)
			return
		}
		if n > 0 {
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// K15: the connection is reset after the server has stored the block. The retry is a new batch with the same token, and FINAL
// and raw counts equal the input.
func TestResetAfterTheBlockWasStored(t *testing.T) {
	cfg := historytest.Migrated(t)
	direct := historytest.Open(t, cfg)
	proxy := newResetter(t, cfg.Addr[0])
	cfg.Addr = []string{proxy.listener.Addr().String()}
	w := history.NewWriter(historytest.Open(t, cfg))
	_, err := w.Insert(t.Context(), batch(outcomes(t, 0, 1, now), 0, 0)) // so that the settings are known
	require.NoError(t, err)

	b := batch(outcomes(t, 1, 5000, now), 1, 5000)
	proxy.armed.Store(true)
	for range 2 {
		_, err = w.Insert(t.Context(), b)
		require.Error(t, err)
		kind, _ := history.Classify(err)
		require.Equal(t, history.FaultTransient, kind)
	}
	require.GreaterOrEqual(t, proxy.resets.Load(), int64(2))
	proxy.armed.Store(false)
	_, err = w.Insert(t.Context(), b)
	require.NoError(t, err)

	var raw, final uint64
	require.NoError(t, direct.Conn().QueryRow(t.Context(), "SELECT (SELECT count() FROM outcomes), (SELECT count() FROM outcomes FINAL)").Scan(&raw, &final))
	require.EqualValues(t, 5001, raw)
	require.EqualValues(t, 5001, final)
}
