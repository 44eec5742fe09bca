package mysql_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/mysql"
	"github.com/pointsman/pointsman/pkg/engine/mysql/familytest"
)

// TestNumbersThatAreUsedAgain: a server that was started again gives the numbers of its connections anew. A client that has not heard of
// it stops nobody else's statement, says that it knows nothing of its own one, and is done within a bound.
func TestNumbersThatAreUsedAgain(t *testing.T) {
	for _, s := range servers {
		for _, reused := range []bool{false, true} {
			name := string(s.flavour)
			if reused {
				name += ", used again"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				srv := familytest.Start(t, s.traits)
				e := client(t, mysql.Config{Addr: srv.Addr, Flavour: s.flavour, Spares: -1})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					_, err := e.Submit(ctx, engine.Query{ID: "T1/1", SQL: "SELECT SLEEP(30)"})
					ended <- err
				}()
				require.Eventually(t, func() bool {
					run, err := e.Find(t.Context(), "T1/1")
					return err == nil && run.State == engine.RunActive
				}, 10*time.Second, 10*time.Millisecond)
				if reused {
					srv.Reuse()
				}
				srv.Forget()
				cancel()
				select {
				case err := <-ended:
					var said *engine.Error
					require.ErrorAs(t, err, &said)
					if reused {
						require.Equal(t, engine.SentUnknown, said.Phase)
					}
				case <-time.After(15 * time.Second):
					t.Fatal("it does not end")
				}
				kills := 0
				for _, sql := range srv.Said() {
					if strings.Contains(sql, "KILL") {
						kills++
					}
				}
				require.Equal(t, reused, kills == 0, "%v", srv.Said())
			})
		}
	}
}

// TestAServerThatSaysItHasKilled: what counts is the server's list, and that is waited for within a bound.
func TestAServerThatSaysItHasKilled(t *testing.T) {
	srv := familytest.Start(t, servers[0].traits)
	srv.Deaf()
	e := client(t, mysql.Config{Addr: srv.Addr, Flavour: servers[0].flavour, Spares: -1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := e.Submit(ctx, engine.Query{ID: "T1/1", SQL: "SELECT SLEEP(30)"})
		ended <- err
	}()
	active := func() bool {
		run, err := e.Find(t.Context(), "T1/1")
		return err == nil && run.State == engine.RunActive
	}
	require.Eventually(t, active, 10*time.Second, 10*time.Millisecond)
	bound, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	found, err := e.Kill(bound, "T1/1")
	require.True(t, found)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, active())
	began := time.Now()
	cancel()
	var said *engine.Error
	require.ErrorAs(t, <-ended, &said)
	require.Equal(t, engine.SentUnknown, said.Phase)
	require.ErrorContains(t, said, "did not confirm that it stopped")
	require.Less(t, time.Since(began), 15*time.Second)
}
