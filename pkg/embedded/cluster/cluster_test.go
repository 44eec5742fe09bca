package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/embedded/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakePool is a pool whose process is a flag.
type fakePool struct {
	starts, stops atomic.Int32
	live          atomic.Bool
	failures      atomic.Int32  // starts that fail before one works
	hold          chan struct{} // when set, Start waits for it
}

func (p *fakePool) Start(ctx context.Context) error {
	p.starts.Add(1)
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if p.failures.Add(-1) >= 0 {
		return errors.New("no room")
	}
	p.live.Store(true)
	return nil
}

func (p *fakePool) Stop(context.Context) error {
	p.stops.Add(1)
	p.live.Store(false)
	return nil
}

func (p *fakePool) Alive() bool { return p.live.Load() }

type answer struct {
	code int
	body map[string]any
}

type bench struct {
	t      *testing.T
	server *cluster.Server
	client *http.Client
}

const objectPath = "/apis/disaggregated.cluster.doris.com/v1/namespaces/pointsman/dorisdisaggregatedclusters/lakehouse"

func serve(t *testing.T, opts cluster.Options) *bench {
	t.Helper()
	opts.Resync = 10 * time.Millisecond
	s, err := cluster.New(opts)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(t, s.Stop(context.Background()))
	})
	return &bench{t: t, server: s, client: &http.Client{Transport: transport}}
}

func twoGroups(batch *fakePool) []cluster.Group {
	return []cluster.Group{
		{UniqueID: "interactive", Replicas: new(int32(1)), Runner: &fakePool{}},
		{UniqueID: "batch", Replicas: new(int32(0)), Runner: batch},
	}
}

func (b *bench) do(method, path, contentType, body string, headers ...string) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.server.URL()+path, bytes.NewBufferString(body))
	require.NoError(b.t, err)
	req.Header.Set("Content-Type", contentType)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	out := answer{code: resp.StatusCode}
	require.NoError(b.t, json.Unmarshal(data, &out.body), string(data))
	return out
}

func (b *bench) get() answer { return b.do("GET", objectPath, "application/json", "") }

func (b *bench) patch(body string) answer {
	return b.do("PATCH", objectPath, "application/json-patch+json", body)
}

func (a answer) at(path ...any) any {
	var v any = a.body
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			l, _ := v.([]any)
			if key >= len(l) {
				return nil
			}
			v = l[key]
		}
	}
	return v
}

func (a answer) status(group string) map[string]any {
	list, _ := a.at("status", "computeGroupStatuses").([]any)
	for _, s := range list {
		if m := s.(map[string]any); m["uniqueId"] == group {
			return m
		}
	}
	return nil
}

func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, 5*time.Second, 5*time.Millisecond, what)
}

const wake = `[{"op":"test","path":"/spec/computeGroups/1/uniqueId","value":"batch"},
	{"op":"replace","path":"/spec/computeGroups/1/replicas","value":1}]`

func TestPatchAnswersAsKubeAPIServerDoes(t *testing.T) {
	for _, c := range []struct {
		name  string
		patch string
		code  int
		check func(*testing.T, answer, answer) // before, after
	}{
		{"test and replace", wake, 200, func(t *testing.T, before, after answer) {
			require.EqualValues(t, 1, after.at("spec", "computeGroups", 1, "replicas"))
			require.Equal(t, before.at("metadata", "generation").(float64)+1, after.at("metadata", "generation"))
		}},
		{"wrong uniqueId", `[{"op":"test","path":"/spec/computeGroups/0/uniqueId","value":"batch"},{"op":"replace","path":"/spec/computeGroups/0/replicas","value":3}]`, 422, unchanged},
		{"wrong replicas", `[{"op":"test","path":"/spec/computeGroups/1/replicas","value":2},{"op":"replace","path":"/spec/computeGroups/1/replicas","value":3}]`, 422, unchanged},
		{"stale resourceVersion by test", `[{"op":"test","path":"/metadata/resourceVersion","value":"0"},{"op":"replace","path":"/spec/computeGroups/1/replicas","value":3}]`, 422, unchanged},
		{"stale resourceVersion by replace", `[{"op":"replace","path":"/metadata/resourceVersion","value":"0"},{"op":"replace","path":"/spec/computeGroups/1/replicas","value":3}]`, 409, unchanged},
		{"index out of range", `[{"op":"replace","path":"/spec/computeGroups/7/replicas","value":3}]`, 422, unchanged},
		{"index out of range at the end of the path", `[{"op":"replace","path":"/spec/computeGroups/7","value":{"uniqueId":"x"}}]`, 422, unchanged},
		{"replace of an absent key sets it", `[{"op":"replace","path":"/spec/computeGroups/1/serviceAccount","value":"sa"}]`, 200, func(t *testing.T, _, after answer) {
			require.Equal(t, "sa", after.at("spec", "computeGroups", 1, "serviceAccount"))
		}},
		{"negative replicas are taken", `[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":-1}]`, 200, func(t *testing.T, _, after answer) {
			require.EqualValues(t, -1, after.at("spec", "computeGroups", 1, "replicas"))
		}},
		{"replicas as a string", `[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":"4"}]`, 422, unchanged},
		{"half a replica", `[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":1.5}]`, 422, unchanged},
		{"more than int32", `[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":3000000000}]`, 422, unchanged},
		{"null replicas", `[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":null}]`, 422, unchanged},
		{"unknown field is dropped", `[{"op":"add","path":"/spec/computeGroups/1/colour","value":"red"}]`, 200, unchanged},
		{"status through the main resource is dropped", `[{"op":"add","path":"/status/clusterHealth","value":{"health":"green"}}]`, 200, unchanged},
		{"not a patch", `{"spec":{}}`, 400, unchanged},
		{"not JSON", `[{`, 400, unchanged},
		{"another name", `[{"op":"replace","path":"/metadata/name","value":"x"}]`, 400, unchanged},
		{"generation cannot be set", `[{"op":"replace","path":"/metadata/generation","value":99}]`, 200, unchanged},
		{"a group without an id", `[{"op":"add","path":"/spec/computeGroups/-","value":{"replicas":1}}]`, 422, unchanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := serve(t, cluster.Options{Groups: twoGroups(&fakePool{hold: make(chan struct{})})})
			eventually(t, func() bool {
				a := b.get()
				return a.status("batch") != nil && a.status("interactive")["availableReplicas"] == 1.0
			}, "both groups reported")
			before := b.get()
			got := b.patch(c.patch)
			require.Equal(t, c.code, got.code, "%v", got.body)
			if c.code != 200 {
				require.Equal(t, "Status", got.body["kind"])
				require.EqualValues(t, c.code, got.body["code"])
			}
			c.check(t, before, b.get())
		})
	}
}

func unchanged(t *testing.T, before, after answer) {
	t.Helper()
	require.Equal(t, before.at("spec"), after.at("spec"))
	require.Equal(t, before.at("metadata", "generation"), after.at("metadata", "generation"))
	require.Equal(t, before.at("metadata", "resourceVersion"), after.at("metadata", "resourceVersion"))
}

func TestTheSamePatchAgainChangesNothing(t *testing.T) {
	pool := &fakePool{}
	b := serve(t, cluster.Options{Groups: twoGroups(pool)})
	require.Equal(t, 200, b.patch(wake).code)
	eventually(t, func() bool { return b.get().status("batch")["availableReplicas"] == 1.0 }, "the pool is up")
	eventually(t, func() bool { return b.get().status("interactive")["availableReplicas"] == 1.0 }, "the other too")
	before := b.get()
	require.Equal(t, 200, b.patch(wake).code)
	unchanged(t, before, b.get())
	require.EqualValues(t, 1, b.server.Writes())
}

func TestOtherRequestsAreRefused(t *testing.T) {
	b := serve(t, cluster.Options{Groups: twoGroups(&fakePool{}), Token: "rw", ReadOnlyToken: "ro", MaxReplicas: 4})
	rw := []string{"Authorization", "Bearer rw"}
	const jsonPatch = "application/json-patch+json"
	for _, c := range []struct {
		name, method, path, contentType, body string
		headers                               []string
		code                                  int
	}{
		{"no token", "GET", objectPath, "", "", nil, 401},
		{"wrong token", "GET", objectPath, "", "", []string{"Authorization", "Bearer no"}, 401},
		{"may read", "GET", objectPath, "", "", []string{"Authorization", "Bearer ro"}, 200},
		{"may not write", "PATCH", objectPath, jsonPatch, wake, []string{"Authorization", "Bearer ro"}, 403},
		{"merge patch", "PATCH", objectPath, "application/merge-patch+json", `{"spec":{"computeGroups":[{"uniqueId":"batch","replicas":1}]}}`, rw, 415},
		{"strategic merge patch", "PATCH", objectPath, "application/strategic-merge-patch+json", `{}`, rw, 415},
		{"policy: below zero", "PATCH", objectPath, jsonPatch, `[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":-1}]`, rw, 422},
		{"policy: over the cap", "PATCH", objectPath, jsonPatch, `[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":5}]`, rw, 422},
		{"policy: removed", "PATCH", objectPath, jsonPatch, `[{"op":"remove","path":"/spec/computeGroups/1/replicas"}]`, rw, 422},
		{"another object", "GET", objectPath + "x", "", "", rw, 404},
		{"delete", "DELETE", objectPath, "", "", rw, 405},
		{"another path", "GET", "/api/v1/pods", "", "", rw, 404},
		{"too large", "PATCH", objectPath, jsonPatch, string(bytes.Repeat([]byte(" "), 4<<20)), rw, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.code, b.do(c.method, c.path, c.contentType, c.body, c.headers...).code)
		})
	}
}

func TestOperatorStartsAndStopsThePool(t *testing.T) {
	pool := &fakePool{}
	b := serve(t, cluster.Options{Groups: twoGroups(pool)})

	// Asleep: phase Ready, health red, and yet nothing is wrong.
	eventually(t, func() bool { s := b.get().status("batch"); return s != nil && s["phase"] == "Ready" }, "asleep")
	eventually(t, func() bool { return b.get().at("status", "clusterHealth", "cgAvailableCount") == 1.0 }, "one of two")
	require.Equal(t, "red", b.get().at("status", "clusterHealth", "health"))
	require.Zero(t, pool.starts.Load())

	require.Equal(t, 200, b.patch(wake).code)
	eventually(t, func() bool { return b.get().status("batch")["availableStatus"] == "Available" }, "awake")
	require.Equal(t, "green", b.get().at("status", "clusterHealth", "health"))

	// The process dies by itself: the status says so, the spec stays.
	pool.live.Store(false)
	eventually(t, func() bool { return b.get().status("batch")["availableReplicas"] == 0.0 }, "dead")
	require.EqualValues(t, 1, b.get().at("spec", "computeGroups", 1, "replicas"))

	require.Equal(t, 200, b.patch(`[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":0}]`).code)
	eventually(t, func() bool { return pool.stops.Load() == 1 }, "stopped")
}

func TestStatusRunsAheadOfThePool(t *testing.T) {
	pool := &fakePool{hold: make(chan struct{})}
	b := serve(t, cluster.Options{Groups: twoGroups(pool)})
	require.Equal(t, 200, b.patch(wake).code)
	eventually(t, func() bool { return pool.starts.Load() == 1 }, "starting")
	s := b.get().status("batch")
	require.Equal(t, "Ready", s["phase"], "nothing sets Scaling on the way up")
	require.EqualValues(t, 1, s["replicas"], "a copy of the spec")
	require.EqualValues(t, 0, s["availableReplicas"])
	close(pool.hold)
	eventually(t, func() bool { return b.get().status("batch")["availableReplicas"] == 1.0 }, "up")
}

func TestAStartThatIsNotWantedAnyMoreIsCalledOff(t *testing.T) {
	pool := &fakePool{hold: make(chan struct{})}
	b := serve(t, cluster.Options{Groups: twoGroups(pool)})
	require.Equal(t, 200, b.patch(wake).code)
	eventually(t, func() bool { return pool.starts.Load() == 1 }, "starting")
	require.Equal(t, 200, b.patch(`[{"op":"replace","path":"/spec/computeGroups/1/replicas","value":0}]`).code)
	eventually(t, func() bool { return b.get().status("batch")["replicas"] == 0.0 }, "called off")
	require.Zero(t, pool.stops.Load(), "what never ran is not stopped")
	require.False(t, pool.live.Load())
}

func TestAFailedStartIsTriedAgain(t *testing.T) {
	pool := &fakePool{}
	pool.failures.Store(1)
	b := serve(t, cluster.Options{Groups: twoGroups(pool)})
	require.Equal(t, 200, b.patch(wake).code)
	eventually(t, func() bool { return b.get().status("batch")["availableReplicas"] == 1.0 }, "up at last")
	require.EqualValues(t, 2, pool.starts.Load())
}

func TestStopEndsThePools(t *testing.T) {
	pool := &fakePool{}
	s, err := cluster.New(cluster.Options{Groups: []cluster.Group{{UniqueID: "batch", Runner: pool}}, Resync: 5 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	eventually(t, func() bool { return pool.live.Load() }, "absent replicas count as one")
	require.NoError(t, s.Stop(context.Background()))
	require.False(t, pool.live.Load())
	require.NoError(t, s.Stop(context.Background()), "stopping twice is fine")
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opts := range map[string]cluster.Options{
		"no groups": {},
		"no id":     {Groups: []cluster.Group{{Runner: &fakePool{}}}},
		"no runner": {Groups: []cluster.Group{{UniqueID: "a"}}},
		"twice":     {Groups: []cluster.Group{{UniqueID: "a", Runner: &fakePool{}}, {UniqueID: "a", Runner: &fakePool{}}}},
		"policy":    {Groups: []cluster.Group{{UniqueID: "a", Runner: &fakePool{}, Replicas: new(int32(9))}}, MaxReplicas: 4},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.New(opts)
			require.Error(t, err)
		})
	}
}

func TestConcurrentPatchesOneWins(t *testing.T) {
	b := serve(t, cluster.Options{Groups: twoGroups(&fakePool{})})
	const compareAndSet = `[{"op":"test","path":"/spec/computeGroups/1/replicas","value":0},{"op":"replace","path":"/spec/computeGroups/1/replicas","value":2}]`
	var won atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if b.patch(compareAndSet).code == 200 {
				won.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
	require.EqualValues(t, 1, b.server.Writes())
}
