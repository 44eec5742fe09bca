package chdb_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	if os.Getenv(parentMark) != "" {
		runParent()
		return
	}
	code := m.Run()
	if common.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		if err := common.engine.Stop(ctx); err != nil {
			code = max(code, 1)
		}
		cancel()
		_ = os.RemoveAll(common.dir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// common is the engine of the tests that need nothing special of it.
var common struct {
	once   sync.Once
	engine *chdb.Engine
	dir    string
	err    error
}

func shared(t *testing.T) *chdb.Engine {
	t.Helper()
	lib := chdbtest.Library(t)
	common.once.Do(func() {
		common.dir, common.err = os.MkdirTemp("", "pointsman-chdb-test-") //nolint:usetesting // it outlives the test
		if common.err != nil {
			return
		}
		common.engine, common.err = chdb.Start(context.Background(), chdb.Config{Name: "shared", DataDir: common.dir, LibPath: lib, Logger: discard()})
	})
	require.NoError(t, common.err)
	return common.engine
}

// database makes a database of its own for a test on the shared engine.
func database(t *testing.T, conn driver.Conn) string {
	t.Helper()
	name := "db_" + strings.ToLower(ulid.Make().String())
	require.NoError(t, conn.Exec(t.Context(), "CREATE DATABASE "+name))
	t.Cleanup(func() { _ = conn.Exec(context.Background(), "DROP DATABASE "+name) })
	return name
}

// answer is what came back over plain HTTP.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a statement in the body with URL parameters given as name, value, and so on.
func post(t *testing.T, engine *chdb.Engine, body string, params ...string) answer {
	t.Helper()
	return do(t, engine, http.MethodPost, body, nil, params...)
}

func do(t *testing.T, engine *chdb.Engine, method, body string, edit func(*http.Request), params ...string) answer {
	t.Helper()
	a, err := try(t.Context(), engine, method, body, edit, params...)
	require.NoError(t, err)
	return a
}

// later is post in a goroutine of its own; an answer that does not come has status 0 and the reason as its body.
func later(t *testing.T, engine *chdb.Engine, body string, params ...string) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		a, err := try(t.Context(), engine, http.MethodPost, body, nil, params...)
		if err != nil {
			a.body = err.Error()
		}
		done <- a
	}()
	return done
}

func try(ctx context.Context, engine *chdb.Engine, method, body string, edit func(*http.Request), params ...string) (answer, error) {
	q := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	req, err := http.NewRequestWithContext(ctx, method, engine.URL()+"/?"+q.Encode(), strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if edit != nil {
		edit(req)
	}
	resp, err := plain.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// plain neither asks for compression nor keeps connections.
var plain = &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}

func ok(t *testing.T, a answer) string {
	t.Helper()
	require.Equal(t, http.StatusOK, a.status, a.body)
	return a.body
}
