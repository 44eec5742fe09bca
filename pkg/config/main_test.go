package config_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/lifecycle"
)

func TestMainExitCodes(t *testing.T) {
	good := write(t, "name: file\nkafka: {password: hunter2}\n")
	bad := write(t, "nane: file\n")
	for name, c := range map[string]struct {
		args    []string
		environ []string
		run     error
		code    int
		stdout  string
		stderr  string
		started bool
	}{
		"runs":              {code: 0, started: true},
		"fails":             {run: errors.New("broker gone"), code: 1, stderr: "pointsman-router: broker gone\n", started: true},
		"fenced":            {run: fmt.Errorf("partition 2: %w", lifecycle.ErrFenced), code: 3, stderr: "partition 2: fenced", started: true},
		"help":              {args: []string{"-help"}, code: 0, stderr: "POINTSMAN_ROUTER_<KEY>"},
		"unknown flag":      {args: []string{"-nope"}, code: 2, stderr: "flag provided but not defined: -nope"},
		"argument":          {args: []string{"start"}, code: 2, stderr: `unexpected argument "start"`},
		"version":           {args: []string{"-version"}, code: 0, stdout: "pointsman-router devel"},
		"check good":        {args: []string{"-check-config", "-config", good}, code: 0, stdout: "pointsman-router: the configuration is valid\n"},
		"check bad":         {args: []string{"-check-config", "-config", bad}, code: 2, stderr: bad + ":1:1: nane: unknown key"},
		"bad does not run":  {args: []string{"-config", bad}, code: 2, stderr: "unknown key"},
		"file from the env": {args: []string{"-check-config"}, environ: []string{"POINTSMAN_ROUTER_CONFIG=" + bad}, code: 2, stderr: bad},
		"print":             {args: []string{"-print-config", "-config", good, "-set", "name=flag"}, code: 0, stdout: "name: flag # flag -set name\n"},
		"print redacts":     {args: []string{"-print-config", "-config", good}, code: 0, stdout: "password: \"[redacted]\" # "},
		"describe":          {args: []string{"-describe-config"}, code: 0, stdout: "| `kafka.pollWait` | duration | `1s` | `KAFKA_POLL_WAIT` | Longest wait. |\n"},
		"warns":             {environ: []string{"POINTSMAN_ROUTER_NOPE=1"}, code: 0, stderr: "warning: environment POINTSMAN_ROUTER_NOPE: no such key", started: true},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			started := false
			code := config.Main(config.Program[sample]{
				Service: "router", Default: sampleDefault(),
				Args: append([]string{}, c.args...), Environ: append([]string{}, c.environ...), Stdout: &stdout, Stderr: &stderr,
				Run: func(context.Context, sample) error { started = true; return c.run },
			})
			require.Equal(t, c.code, code, "%s%s", stdout.String(), stderr.String())
			require.Contains(t, stdout.String(), c.stdout)
			require.Contains(t, stderr.String(), c.stderr)
			require.Equal(t, c.started, started)
			require.NotContains(t, stdout.String()+stderr.String(), "hunter2")
		})
	}
}

// A service that follows its configuration gets what its file, variables and flags say now, or what is wrong with it.
func TestFollow(t *testing.T) {
	file := write(t, "name: file\nkafka: {pollWait: 2s}\n")
	var stderr strings.Builder
	code := config.Main(config.Program[sample]{
		Service: "router", Default: sampleDefault(), Args: []string{"-config", file, "-set", "name=flag"}, Environ: []string{}, Stdout: &stderr, Stderr: &stderr,
		Follow: func(_ context.Context, cfg sample, again func() (sample, error)) error {
			require.Equal(t, 2*time.Second, cfg.Kafka.PollWait)
			require.NoError(t, os.WriteFile(file, []byte("kafka: {pollWait: 3s}\n"), 0o600))
			now, err := again()
			require.NoError(t, err)
			require.Equal(t, 3*time.Second, now.Kafka.PollWait)
			require.Equal(t, "flag", now.Name)
			require.NoError(t, os.WriteFile(file, []byte("kafka: {pollWait: soon}\n"), 0o600))
			_, err = again()
			require.ErrorContains(t, err, file+":1:")
			return nil
		},
	})
	require.Zero(t, code, stderr.String())
}

func TestMainProbes(t *testing.T) {
	ready := true
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, `{"checks":[{"name":"kafka","reason":"refused"}]}`)
		}
	}))
	run := func() (int, string) {
		var stderr strings.Builder
		code := config.Main(config.Program[sample]{
			Service: "router", Default: sampleDefault(), Args: []string{"-probe", service.URL}, Environ: []string{}, Stdout: &stderr, Stderr: &stderr,
			Run: func(context.Context, sample) error { t.Error("a probe starts nothing"); return nil },
		})
		return code, stderr.String()
	}
	code, _ := run()
	require.Equal(t, 0, code)
	ready = false
	code, stderr := run()
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `503 Service Unavailable: {"checks":[{"name":"kafka","reason":"refused"}]}`)
	service.Close()
	code, stderr = run()
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "connection refused")
}

func TestDescribe(t *testing.T) {
	fields := map[string]config.Field{}
	for _, f := range config.Describe(sampleDefault()) {
		require.NotEmpty(t, f.Doc, f.Path)
		fields[f.Path] = f
	}
	for path, want := range map[string]config.Field{
		"kafka.brokers":        {Env: "KAFKA_BROKERS", Type: "list of text", Default: "[a:1, b:2, c:3]", Doc: "Addresses."},
		"kafka.pollWait":       {Env: "KAFKA_POLL_WAIT", Type: "duration", Default: "1s", Doc: "Longest wait."},
		"kafka.maxFetch":       {Env: "KAFKA_MAX_FETCH", Type: "bytes", Default: "1 MiB", Doc: "Largest answer."},
		"kafka.password":       {Env: "KAFKA_PASSWORD", Type: "secret", Doc: "For SASL.", Secret: true},
		"limit":                {Env: "LIMIT", Type: "integer", Doc: "Upper bound; none when it is missing."},
		"since":                {Env: "SINCE", Type: "time", Doc: "First day."},
		"pools":                {Env: "POOLS", Type: "map of section", Doc: "Pools by name."},
		"pools.<name>.threads": {Type: "integer", Default: "4", Doc: "Threads."},
		"tokens[].token":       {Type: "secret", Doc: "Bearer token.", Secret: true},
	} {
		want.Path = path
		require.Equal(t, want, fields[path])
	}
}

func TestSectionIsTheSameEachTime(t *testing.T) {
	page := func() string {
		var b strings.Builder
		require.NoError(t, config.Section{Service: "router", Default: sampleDefault()}.Write(&b))
		return b.String()
	}
	first := page()
	require.Contains(t, first, "| `kafka.pollWait` | duration | `1s` | `KAFKA_POLL_WAIT` | Longest wait. |\n")
	require.Equal(t, first, page())
}

// Mistakes of the program are found by whoever first loads or describes the configuration, not by its users.
func TestProgrammingMistakesPanic(t *testing.T) {
	type untagged struct{ Name string }
	type hidden struct {
		name string `yaml:"name"`
	}
	type channel struct {
		Events chan int `yaml:"events"`
	}
	type twins struct {
		PollWait time.Duration `yaml:"pollWait"`
		Poll     struct {
			Wait time.Duration `yaml:"wait"`
		} `yaml:"poll"`
	}
	require.PanicsWithValue(t, `config: field config_test.untagged.Name needs to be exported, named and tagged yaml:"name" (or "-")`,
		func() { config.Describe(untagged{}) })
	require.Panics(t, func() { config.Describe(hidden{name: "x"}) })
	require.PanicsWithValue(t, "config: field config_test.channel.Events has type chan int, which no configuration can hold",
		func() { config.Describe(channel{}) })
	require.PanicsWithValue(t, "config: poll.wait and pollWait have the same variable POLL_WAIT", func() {
		_, _ = config.Load(twins{}, config.Options{Environ: []string{"A=b"}, Service: "x"})
	})
}
