package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

const budgetsAnswer = `{"partitions":[0,2],"of":6,"sessions":[
	{"tenant":"support","session":"s\u001b1","usage":{"queries":22,"bytes":96000000000,"wallMs":41000,"unknownBytes":1},"open":2,"lastAt":"2026-11-30T09:15:30Z",
	 "left":{"queries":{"state":"known","value":178,"unit":"count","source":"budget","at":"2026-11-30T09:15:30Z"},"bytes":{"state":"known","value":1904000000000,"unit":"bytes","source":"budget","at":"2026-11-30T09:15:30Z"},"wallMs":{"state":"absent","source":"budget"}}}],
	"tenants":[{"tenant":"support","queries":40,"bytes":1000,"running":3,"principals":{"support/etl":2}}]}`

func TestBudgetsShow(t *testing.T) {
	var asked string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		if r.URL.Query().Get("tenant") == "broken" {
			_, _ = fmt.Fprint(w, `{"sessions":7}`)
			return
		}
		_, _ = fmt.Fprint(w, budgetsAnswer)
	}))
	defer srv.Close()
	code, out, stderr := run("budgets", "show", "--url", srv.URL, "--tenant", "support", "--session", "s1")
	require.Zero(t, code, stderr)
	require.Equal(t, "/v1/budgets?session=s1&tenant=support", asked)
	require.Regexp(t, `support\s+s 1\s+2\s+22\s+178\s+96 GB \(\+1 unknown\)\s+1\.9 TB\s+41s\s+-\s+2026-11-30 09:15:30`, out)
	require.Regexp(t, `support\s+3\s+40\s+1 kB\s+support/etl 2`, out)
	require.Contains(t, stderr, "2 of 6 partitions")
	require.NotContains(t, out, "\x1b")

	_, out, _ = run("budgets", "show", "--url", srv.URL, "-o", "json")
	require.JSONEq(t, budgetsAnswer, out)
	code, _, stderr = run("budgets", "show", "--url", srv.URL, "--tenant", "broken")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "reading the answer")
	code, _, stderr = run("budgets", "show", "--url", "http://127.0.0.1:1")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "--url")
	code, _, _ = run("budgets")
	require.Equal(t, 2, code)
}
