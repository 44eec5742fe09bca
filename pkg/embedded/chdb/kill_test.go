package chdb_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

// tick and patience are for what happens soon, but on a loaded machine not at once.
const (
	tick     = 20 * time.Millisecond
	patience = 15 * time.Second
)

// forever is a query that ends only when it is killed.
const forever = "SELECT count() FROM numbers_mt(1000000000000) WHERE NOT ignore(sipHash64(number))"

// background runs a statement and waits until the engine knows it.
func background(t *testing.T, sql, id string, params ...string) <-chan answer {
	t.Helper()
	engine := shared(t)
	conn := chdbtest.Open(t, engine)
	done := later(t, engine, sql, append([]string{"query_id", id}, params...)...)
	require.Eventually(t, func() bool { return runs(t, conn, id) }, patience, tick)
	return done
}

func code(a answer) string { return a.header.Get("X-ClickHouse-Exception-Code") }

func TestDuplicateQueryID(t *testing.T) {
	done := background(t, forever, "twice")
	a := post(t, shared(t), "SELECT 1", "query_id", "twice")
	require.Equal(t, "216", code(a), a.body)
	ok(t, post(t, shared(t), "KILL QUERY WHERE query_id = 'twice'"))
	require.Equal(t, "394", code(<-done))
	require.Eventually(t, func() bool { return post(t, shared(t), "SELECT 1", "query_id", "twice").status == 200 }, patience, tick, "free again")
}

func TestKillQuery(t *testing.T) {
	for _, c := range []struct{ name, kill, status string }{
		{"plain", "KILL QUERY WHERE query_id = 'victim'", "waiting"},
		{"async", "KILL QUERY WHERE query_id='victim' ASYNC", "waiting"},
		{"sync", "KILL QUERY WHERE query_id = 'victim' SYNC FORMAT TSV", "finished"},
		{"several", "KILL QUERY WHERE user = currentUser() AND query_id IN ('other', 'victim') SYNC", "finished"},
		{"by text", "KILL QUERY WHERE query LIKE 'SELECT count() FROM numbers_mt%'", "waiting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			done := background(t, forever, "victim")
			a := post(t, shared(t), c.kill)
			require.Equal(t, c.status+"\tvictim\tdefault\t"+forever, strings.TrimSpace(ok(t, a)))
			killed := <-done
			require.Equal(t, http.StatusInternalServerError, killed.status)
			require.Equal(t, "394", code(killed), killed.body)
		})
	}
	require.Empty(t, ok(t, post(t, shared(t), "KILL QUERY WHERE query_id = 'nobody' SYNC")))
	require.Equal(t, "47", code(post(t, shared(t), "KILL QUERY WHERE nosuch = 1")))
	done := background(t, forever, "spared")
	require.Contains(t, ok(t, post(t, shared(t), "KILL QUERY WHERE query_id = 'spared' TEST")), "spared")
	require.True(t, runs(t, chdbtest.Open(t, shared(t)), "spared"))
	ok(t, post(t, shared(t), "KILL QUERY WHERE query_id = {id:String}", "param_id", "spared"))
	require.Equal(t, "394", code(<-done))
}

func TestKillAnInsertAndAStream(t *testing.T) {
	engine := shared(t)
	db := database(t, chdbtest.Open(t, engine))
	ok(t, post(t, engine, "CREATE TABLE "+db+".t (n UInt64) ENGINE = MergeTree ORDER BY n"))
	done := background(t, "INSERT INTO "+db+".t SELECT number FROM numbers(1000000000000)", "insert")
	ok(t, post(t, engine, "KILL QUERY WHERE query_id = 'insert' SYNC"))
	require.Equal(t, "394", code(<-done))

	// This one has sent its headers already: the error comes at the end of what was sent.
	done = background(t, "SELECT number FROM numbers(100000000000) WHERE sleepEachRow(0.000001) = 0", "stream", "max_block_size", "20000")
	ok(t, post(t, engine, "KILL QUERY WHERE query_id = 'stream'"))
	a := <-done
	require.Contains(t, a.body[max(0, len(a.body)-500):], "Code: 394")
}

func TestProcesses(t *testing.T) {
	done := background(t, forever, "seen")
	engine := shared(t)
	for _, sql := range []string{
		"SELECT query_id, query FROM system.processes WHERE query_id = 'seen'",
		"SELECT p.query_id, p.query FROM `system`.processes AS p WHERE p.query_id = 'seen'",
		"SELECT system.processes.query_id, query FROM system.processes WHERE initial_query_id = 'seen'",
		"SELECT query_id, query FROM system.processes WHERE query_id = 'seen' FORMAT TSV SETTINGS max_threads = 1",
	} {
		require.Equal(t, "seen\t"+forever+"\n", ok(t, post(t, engine, sql)), sql)
		self := "SELECT query FROM system.processes WHERE query_id = 'self' FORMAT TSVRaw"
		require.Equal(t, self, strings.TrimSpace(strings.ReplaceAll(ok(t, post(t, engine, self, "query_id", "self")), "\n", "")))
	}
	require.Contains(t, ok(t, post(t, engine, "SHOW PROCESSLIST")), "\tseen\t")
	require.Equal(t, "system.processes\n", ok(t, post(t, engine, "SELECT 'system.processes'")), "not in a string")
	require.Equal(t, "system", strings.TrimSpace(ok(t, post(t, engine, "SELECT database FROM system.tables WHERE name = 'processes'"))))
	ok(t, post(t, engine, "KILL QUERY WHERE query_id = 'seen'"))
	<-done
}

// TestClientGone: the engine stops working for a client that closed its connection, whatever the query does.
func TestClientGone(t *testing.T) {
	engine := shared(t)
	conn := chdbtest.Open(t, engine)
	db := database(t, conn)
	ok(t, post(t, engine, "CREATE TABLE "+db+".t (n UInt64) ENGINE = MergeTree ORDER BY n"))
	for id, sql := range map[string]string{
		"gone-computing": forever,
		"gone-streaming": "SELECT number, toString(number) FROM numbers(1000000000000)",
		"gone-inserting": "INSERT INTO " + db + ".t SELECT number FROM numbers(1000000000000)",
		"gone-sleeping":  "SELECT sleepEachRow(1) FROM numbers(1000) SETTINGS max_block_size = 1",
	} {
		t.Run(id, func(t *testing.T) {
			req, err := http.NewRequest(http.MethodPost, engine.URL()+"/?query_id="+id, strings.NewReader(sql))
			require.NoError(t, err)
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			ctx, hangUp := contextWithCancel(t)
			go func() {
				// Never reads the answer, so that the stream stands still too.
				resp, err := transport.RoundTrip(req.WithContext(ctx))
				if err == nil {
					<-ctx.Done()
					_ = resp.Body.Close()
				}
			}()
			require.Eventually(t, func() bool { return runs(t, conn, id) }, patience, tick)
			hangUp()
			require.Eventually(t, func() bool { return !runs(t, conn, id) }, patience, tick)
			require.Eventually(t, func() bool { return post(t, engine, "SELECT 1", "query_id", id).status == 200 }, patience, tick)
		})
	}
}
