package telemetry_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/pkg/telemetry/telemetrytest"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestAdminServer(t *testing.T) {
	tel, _ := telemetrytest.New(t, "router")
	group := lifecycle.NewGroup(lifecycle.Options{})
	addr, err := tel.ServeAdmin(t.Context(), group, telemetry.AdminConfig{Address: "127.0.0.1:0"})
	require.NoError(t, err)
	base := "http://" + addr.String()

	gate := tel.Health.Gate("consumer", "no partitions assigned yet")
	code, body := get(t, base+"/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "no partitions assigned yet", decode(t, body).Checks[0].Reason)
	gate.Open()
	code, body = get(t, base+"/readyz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, telemetry.Report{Service: "router", OK: true, Checks: []telemetry.CheckResult{{Name: "consumer", OK: true}}}, decode(t, body))

	code, body = get(t, base+"/healthz")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"checks":[]`)
	code, body = get(t, base+"/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "pointsman_build_info{")
	_, body = get(t, base+"/version")
	require.Contains(t, body, `"version":"devel"`)
	code, _ = get(t, base+"/debug/pprof/")
	require.Equal(t, http.StatusNotFound, code, "profiling shows memory: only when it is asked for")

	require.NoError(t, group.Stop(t.Context()))
	_, err = http.Get(base + "/healthz")
	require.Error(t, err)
	require.NoError(t, group.Err())
}

func TestAdminServerWithProfiling(t *testing.T) {
	group := lifecycle.NewGroup(lifecycle.Options{})
	addr, err := telemetry.Discard().ServeAdmin(t.Context(), group, telemetry.AdminConfig{Address: "127.0.0.1:0", Profiling: true})
	require.NoError(t, err)
	code, body := get(t, "http://"+addr.String()+"/debug/pprof/goroutine?debug=1")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "goroutine profile")
	require.NoError(t, group.Stop(context.Background()))
}

func TestAdminAddressThatIsTaken(t *testing.T) {
	group := lifecycle.NewGroup(lifecycle.Options{})
	tel := telemetry.Discard()
	addr, err := tel.ServeAdmin(t.Context(), group, telemetry.AdminConfig{Address: "127.0.0.1:0"})
	require.NoError(t, err)
	_, err = tel.ServeAdmin(t.Context(), group, telemetry.AdminConfig{Address: addr.String()})
	require.ErrorContains(t, err, "opening the admin server")
	require.NoError(t, group.Stop(t.Context()))
}

func TestNoAdminServer(t *testing.T) {
	group := lifecycle.NewGroup(lifecycle.Options{})
	addr, err := telemetry.Discard().ServeAdmin(t.Context(), group, telemetry.AdminConfig{})
	require.NoError(t, err)
	require.Nil(t, addr)
	require.NoError(t, group.Stop(t.Context()))
}
