package kube_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/embedded/cluster"
	"github.com/pointsman/pointsman/pkg/kube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type idlePool struct{}

func (idlePool) Start(context.Context) error { return nil }
func (idlePool) Stop(context.Context) error  { return nil }

func serve(t *testing.T, opts cluster.Options) (*cluster.Server, kube.Config) {
	t.Helper()
	if opts.Groups == nil {
		opts.Groups = []cluster.Group{
			{UniqueID: "interactive", Replicas: new(int32(1)), Runner: idlePool{}},
			{UniqueID: "batch", Replicas: new(int32(0)), Runner: idlePool{}},
			{UniqueID: "unsaid", Runner: idlePool{}},
		}
	}
	opts.Resync = 5 * time.Millisecond
	s, err := cluster.New(opts)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s, kube.Config{URL: s.URL(), Namespace: s.Namespace(), Name: s.Name()}
}

func client(t *testing.T, cfg kube.Config) *kube.Client {
	t.Helper()
	c, err := kube.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func to(n int32) func(kube.Group) (int32, bool) {
	return func(kube.Group) (int32, bool) { return n, true }
}

func TestScaleWritesOnce(t *testing.T) {
	s, cfg := serve(t, cluster.Options{})
	c := client(t, cfg)
	for i := range 3 {
		got, err := c.Scale(t.Context(), "batch", to(2))
		require.NoError(t, err)
		require.Equal(t, i == 0, got.Wrote)
		require.EqualValues(t, 2, got.To)
	}
	require.EqualValues(t, 1, s.Writes())
	read, err := c.Get(t.Context())
	require.NoError(t, err)
	group, err := read.Group("interactive")
	require.NoError(t, err)
	require.EqualValues(t, 1, group.Replicas(), "the other groups stay")
	require.Len(t, read.Groups, 3)
}

func TestAbsentReplicasAreOne(t *testing.T) {
	_, cfg := serve(t, cluster.Options{})
	c := client(t, cfg)
	read, err := c.Get(t.Context())
	require.NoError(t, err)
	group, err := read.Group("unsaid")
	require.NoError(t, err)
	require.Nil(t, group.Declared)
	require.EqualValues(t, 1, group.Replicas())

	// The write works on the absent field, and makes an explicit zero of it.
	got := scaleRetrying(t, c, "unsaid", 0)
	group, err = got.Cluster.Group("unsaid")
	require.NoError(t, err)
	require.NotNil(t, group.Declared)
	require.Zero(t, *group.Declared)
}

// scaleRetrying is for the absent field: its patch tests the version of the object, which the operator's status moves.
func scaleRetrying(t *testing.T, c *kube.Client, group string, n int32) kube.Result {
	t.Helper()
	var got kube.Result
	require.Eventually(t, func() bool {
		var err error
		got, err = c.Scale(t.Context(), group, to(n))
		return err == nil && got.Wrote
	}, 5*time.Second, 5*time.Millisecond)
	return got
}

func TestStatusIsFoundByIDAndObserved(t *testing.T) {
	_, cfg := serve(t, cluster.Options{})
	c := client(t, cfg)
	_, err := c.Scale(t.Context(), "batch", to(1))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		read, err := c.Get(t.Context())
		require.NoError(t, err)
		group, err := read.Group("batch")
		require.NoError(t, err)
		return read.Observed() && group.Status != nil && group.Status.Available != nil && *group.Status.Available == 1
	}, 5*time.Second, 5*time.Millisecond)
}

func TestAfterARefusalTheObjectDecides(t *testing.T) {
	s, cfg := serve(t, cluster.Options{})
	front := httptest.NewServer(nil)
	defer front.Close()

	// Between our read and our patch somebody else scales: the first patch fails its test with 422.
	var meddled atomic.Int32
	meddler := client(t, cfg)
	front.Config.Handler = forward(t, s.URL(), func(r *http.Request) {
		if r.Method == http.MethodPatch && meddled.Add(1) == 1 {
			_, err := meddler.Scale(context.Background(), "batch", to(3))
			require.NoError(t, err)
		}
	})
	cfg.URL = front.URL
	c := client(t, cfg)
	var seen []int32
	got, err := c.Scale(t.Context(), "batch", func(g kube.Group) (int32, bool) {
		seen = append(seen, g.Replicas())
		return max(g.Replicas(), 2), true // a raise never lowers
	})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 3}, seen)
	require.False(t, got.Wrote, "3 is more than the 2 that was wanted")
	require.EqualValues(t, 3, got.To)
}

func TestContentionEnds(t *testing.T) {
	s, cfg := serve(t, cluster.Options{})
	front := httptest.NewServer(nil)
	defer front.Close()
	meddler := client(t, cfg)
	var n atomic.Int32
	front.Config.Handler = forward(t, s.URL(), func(r *http.Request) {
		if r.Method == http.MethodPatch {
			_, err := meddler.Scale(context.Background(), "batch", to(10+n.Add(1)))
			require.NoError(t, err)
		}
	})
	cfg.URL = front.URL
	_, err := client(t, cfg).Scale(t.Context(), "batch", to(2))
	require.ErrorIs(t, err, kube.ErrContended)
	require.EqualValues(t, 3, n.Load(), "three tries")
}

// forward passes a request on after before has seen it.
func forward(t *testing.T, target string, before func(*http.Request)) http.HandlerFunc {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return func(w http.ResponseWriter, r *http.Request) {
		before(r)
		req, err := http.NewRequestWithContext(r.Context(), r.Method, target+r.URL.Path, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		req.Header = r.Header.Clone()
		resp, err := transport.RoundTrip(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}
}

func TestRefusalsAreErrors(t *testing.T) {
	_, cfg := serve(t, cluster.Options{
		Token: "rw", ReadOnlyToken: "ro", MaxReplicas: 4,
		Groups: []cluster.Group{{UniqueID: "batch", Replicas: new(int32(0)), Runner: idlePool{}}},
	})
	with := func(token string) kube.Config {
		c := cfg
		c.TokenFile = filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(c.TokenFile, []byte(token+"\n"), 0o600))
		return c
	}
	var status *kube.StatusError

	_, err := client(t, cfg).Get(t.Context())
	require.ErrorAs(t, err, &status)
	require.Equal(t, 401, status.Code)

	_, err = client(t, with("ro")).Scale(t.Context(), "batch", to(1))
	require.ErrorAs(t, err, &status)
	require.Equal(t, 403, status.Code)
	require.NotErrorIs(t, err, kube.ErrContended, "a forbidden write is not tried again")

	rw := with("rw")
	_, err = client(t, rw).Scale(t.Context(), "batch", to(9))
	require.ErrorAs(t, err, &status)
	require.Equal(t, 422, status.Code, "denied by the policy, which looks like a failed test")
	_, err = client(t, rw).Scale(t.Context(), "batch", to(-1))
	require.Error(t, err)
	_, err = client(t, rw).Scale(t.Context(), "nobody", to(1))
	require.ErrorIs(t, err, kube.ErrNoGroup)

	rw.Name = "another"
	_, err = client(t, rw).Get(t.Context())
	require.ErrorAs(t, err, &status)
	require.Equal(t, 404, status.Code)
}

func TestTokenIsReadAgain(t *testing.T) {
	_, cfg := serve(t, cluster.Options{Token: "new"})
	cfg.TokenFile = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(cfg.TokenFile, []byte("old"), 0o600))
	c := client(t, cfg)
	_, err := c.Get(t.Context())
	require.Error(t, err)
	require.NoError(t, os.WriteFile(cfg.TokenFile, []byte("new"), 0o600))
	_, err = c.Get(t.Context())
	require.NoError(t, err)
}

func TestTLS(t *testing.T) {
	inner, err := cluster.New(cluster.Options{Groups: []cluster.Group{{UniqueID: "batch", Replicas: new(int32(0)), Runner: idlePool{}}}})
	require.NoError(t, err)
	server := httptest.NewTLSServer(inner.Handler())
	defer server.Close()
	cfg := kube.Config{URL: server.URL, Namespace: inner.Namespace(), Name: inner.Name()}

	_, err = client(t, cfg).Get(t.Context())
	require.ErrorContains(t, err, "certificate", "an unknown authority is not trusted")

	cfg.CAFile = filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(cfg.CAFile, certificatePEM(server), 0o600))
	_, err = client(t, cfg).Get(t.Context())
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(cfg.CAFile, []byte("nothing"), 0o600))
	_, err = kube.New(cfg)
	require.Error(t, err)
}

func TestOddAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want string
	}{
		"not JSON":      {200, "<html>", "decoding"},
		"no version":    {200, "{}", "resourceVersion"},
		"a proxy's 502": {502, "<html>", "Bad Gateway"},
		"a redirect":    {302, "", "302"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			_, err := client(t, kube.Config{URL: server.URL, Namespace: "n", Name: "o"}).Get(t.Context())
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	ok := kube.Config{URL: "https://kubernetes.default.svc", Namespace: "n", Name: "o", TokenFile: "t"}
	require.NoError(t, ok.Validate())
	for name, edit := range map[string]func(*kube.Config){
		"no address":       func(c *kube.Config) { c.URL = "" },
		"no scheme":        func(c *kube.Config) { c.URL = "kubernetes:443" },
		"token in plain":   func(c *kube.Config) { c.URL = "http://kubernetes.default.svc" },
		"no namespace":     func(c *kube.Config) { c.Namespace = "" },
		"a path as a name": func(c *kube.Config) { c.Name = "a/status" },
	} {
		t.Run(name, func(t *testing.T) {
			c := ok
			edit(&c)
			require.Error(t, c.Validate())
		})
	}
}

// A thousand callers with one wish write once.
func TestManyIdenticalLaunches(t *testing.T) {
	s, cfg := serve(t, cluster.Options{})
	c := client(t, cfg)
	var all sync.WaitGroup
	var wrote atomic.Int32
	for range 50 {
		all.Go(func() {
			got, err := c.Scale(t.Context(), "batch", func(g kube.Group) (int32, bool) { return max(g.Replicas(), 1), true })
			if err == nil && got.Wrote {
				wrote.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, wrote.Load())
	require.EqualValues(t, 1, s.Writes())
}

// The one write is exactly the patch that the admission policy of a real cluster lets through.
func TestTheWriteOnTheWire(t *testing.T) {
	var sent []map[string]any
	var contentType string
	inner, cfg := serve(t, cluster.Options{})
	front := httptest.NewServer(nil)
	defer front.Close()
	front.Config.Handler = forward(t, inner.URL(), func(r *http.Request) {
		if r.Method == http.MethodPatch {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(body, &sent))
			contentType = r.Header.Get("Content-Type")
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
	})
	cfg.URL = front.URL
	_, err := client(t, cfg).Scale(t.Context(), "batch", to(1))
	require.NoError(t, err)
	require.Equal(t, "application/json-patch+json", contentType)
	require.Equal(t, []map[string]any{
		{"op": "test", "path": "/spec/computeGroups/1/uniqueId", "value": "batch"},
		{"op": "test", "path": "/spec/computeGroups/1/replicas", "value": 0.0},
		{"op": "replace", "path": "/spec/computeGroups/1/replicas", "value": 1.0},
	}, sent)
}

func certificatePEM(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
