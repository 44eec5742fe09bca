package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/chdbtest"
	"github.com/pointsman/pointsman/pkg/replay"
)

// pointsman is the command, built for the test, with a data folder.
type pointsman struct {
	t    *testing.T
	bin  string
	env  []string
	data string
}

func newPointsman(t *testing.T) *pointsman {
	p := &pointsman{t: t, bin: filepath.Join(t.TempDir(), "pointsman"), data: t.TempDir()}
	p.env = append(os.Environ(), "CHDB_LIB_PATH="+chdbtest.Library(t))
	out, err := exec.Command("go", "build", "-o", p.bin, "github.com/pointsman/pointsman/services/pointsman").CombinedOutput()
	require.NoError(t, err, string(out))
	return p
}

func (p *pointsman) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.bin, args...)
	cmd.Env = p.env
	return cmd
}

// run runs a command to its end.
func (p *pointsman) run(args ...string) (code int, out, errs string) {
	p.t.Helper()
	cmd := p.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil {
		var ended *exec.ExitError
		require.ErrorAs(p.t, err, &ended)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// replay replays the data folder, and returns the report.
func (p *pointsman) replay(want int, args ...string) replay.Report {
	p.t.Helper()
	code, out, errs := p.run(append([]string{"replay", "--data", p.data, "-o", "json"}, args...)...)
	require.Equal(p.t, want, code, errs)
	var rep replay.Report
	require.NoError(p.t, json.Unmarshal([]byte(out), &rep), out)
	return rep
}

// TestReplayOfADay records the demo, with history that grows while it runs and an agent that overspends, stops everything, and replays
// it: nothing differs with the policy of the day, and what differs with another one is told. Then the whole is killed in the middle of
// its work, and what it had decided until then is there.
func TestReplayOfADay(t *testing.T) {
	p := newPointsman(t)
	code, _, errs := p.run("up", "--demo", "--for", "15s", "--count", "400", "--no-break", "--free-ports", "--scale", "0.01", "--data", p.data)
	require.Zero(t, code, errs)

	day := p.replay(0)
	require.GreaterOrEqual(t, day.Decisions, 400)
	require.Equal(t, day.Decisions, day.Identical, "each decision comes out the same, byte for byte")
	require.Equal(t, replay.Check{Reproduced: day.Decisions}, day.Check)
	require.Zero(t, day.Gaps.InputMissing)
	require.Zero(t, day.Gaps.DecisionMissing)
	require.Zero(t, day.Gaps.Unreadable)

	same := filepath.Join(t.TempDir(), "same.yaml")
	require.NoError(t, os.WriteFile(same, policies.Default, 0o600))
	require.Equal(t, day.Decisions, p.replay(0, "--policy", same, "--max-changed", "0").Identical)

	stricter := strings.Replace(string(policies.Default), "max_queries: 24", "max_queries: 5", 1)
	require.NotEqual(t, string(policies.Default), stricter)
	changed := filepath.Join(t.TempDir(), "stricter.yaml")
	require.NoError(t, os.WriteFile(changed, []byte(stricter), 0o600))
	rep := p.replay(4, "--policy", changed, "--max-changed", "0")
	require.NotZero(t, rep.Changed)
	for _, move := range rep.Moves {
		require.Equal(t, "rejected", move.To, "a smaller budget rejects, and moves nothing: %v", rep.Moves)
	}
	code, out, _ := p.run("replay", "--data", p.data, "--policy", changed)
	require.Zero(t, code)
	require.Contains(t, out, "are rejected, and were routed")
	require.Contains(t, out, "[session_query_budget]")
	t.Log(out)
	code, out, _ = p.run("policy", "diff", same, changed, "--data", p.data, "-o", "markdown")
	require.Zero(t, code)
	require.Contains(t, out, "~ budgets.agent_session.max_queries: 24 -> 5")

	more := p.killed()
	after := p.replay(0)
	require.Equal(t, day.Decisions+more, after.Decisions)
	require.Equal(t, after.Decisions, after.Identical)
}

// killed starts everything on the folder, asks some queries, and kills it; it returns how many were decided.
func (p *pointsman) killed() int {
	t := p.t
	cmd := p.command("up", "--free-ports", "--scale", "0.01", "--data", p.data)
	said := &lines{}
	cmd.Stderr = said
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	front := regexp.MustCompile(`HTTP +(http://[0-9.:]+)`)
	require.Eventually(t, func() bool { return front.MatchString(said.String()) }, time.Minute, 100*time.Millisecond, "%s", said)
	url := front.FindStringSubmatch(said.String())[1]
	code, _, errs := p.run("replay", "--data", p.data)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "pointsman is running on "+p.data)
	const n = 3
	for range n {
		resp, err := http.Post(url+"/v1/queries?wait=20s", "application/json", strings.NewReader(`{"sql":"SELECT count() AS n FROM tpch.nation","tenant":"me"}`))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, string(body), `"state":"succeeded"`)
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	return n
}

// lines collects what a process says.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String is what was said so far.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
