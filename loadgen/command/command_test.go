package command

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/loadgen/publish"
	"github.com/pointsman/pointsman/pkg/query"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Main(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"data", "--help"}, {"ddl", "--help"}, {"run", "--help"}, {"print", "--help"}} {
		code, out, errOut := run(t, args...)
		require.Zero(t, code)
		require.Contains(t, out, "Usage: loadgen")
		require.Empty(t, errOut)
	}
}

func TestBadUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"data"}, {"dance"}, {"run", "--report", "xml"}, {"print", "--for", "soon"}} {
		code, _, errOut := run(t, args...)
		require.Equal(t, 2, code, "%v", args)
		require.Contains(t, errOut, "loadgen --help")
	}
}

func TestFailuresAreOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"data", "--out", filepath.Join(t.TempDir(), "d"), "--scale", "0"},
		{"data", "--out", filepath.Join(t.TempDir(), "d"), "--tables", "lineitems"},
		{"ddl", "--dir", t.TempDir()},
		{"print", "--count", "3"},
		{"print", "--rate=-1"},
		{"run", "--brokers", "127.0.0.1:1", "--for", "5s"},
	} {
		code, out, errOut := run(t, args...)
		require.Equal(t, 1, code, "%v", args)
		require.Empty(t, out)
		last := errOut[strings.LastIndex(strings.TrimSuffix(errOut, "\n"), "\n")+1:]
		require.True(t, strings.HasPrefix(last, "loadgen: "), "%q", errOut)
	}
}

func TestDataThenDDL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	code, out, errOut := run(t, "data", "--out", dir, "--scale", "0.001", "--tables", "region,supplier")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "supplier")
	require.Empty(t, errOut, "no progress bar where there is no terminal")

	code, out, _ = run(t, "ddl", "--dir", dir, "--database", "shop")
	require.Zero(t, code)
	require.Equal(t, 3, strings.Count(out, ";\n"))
	require.Contains(t, out, "CREATE OR REPLACE VIEW shop.supplier AS")
}

func TestPrintIsWhatRunSends(t *testing.T) {
	code, out, _ := run(t, "print", "--count", "300")
	require.Zero(t, code)
	n := 0
	for in := bufio.NewScanner(strings.NewReader(out)); in.Scan(); n++ {
		var task query.Task
		require.NoError(t, json.Unmarshal(in.Bytes(), &task))
		require.NoError(t, task.Validate(query.Limits{}))
	}
	require.Equal(t, 300, n)

	code, out, _ = run(t, "print", "--count", "300", "--times")
	require.Zero(t, code)
	last := -1.0
	for in := bufio.NewScanner(strings.NewReader(out)); in.Scan(); {
		var line struct {
			AtMs float64
			Kind string
			Task query.Task
		}
		require.NoError(t, json.Unmarshal(in.Bytes(), &line))
		require.GreaterOrEqual(t, line.AtMs, last)
		require.NotEmpty(t, line.Kind)
		require.NotEmpty(t, line.Task.SQL)
		last = line.AtMs
	}
}

func TestRunPublishesAndReports(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "requests"))
	require.NoError(t, err)
	defer cluster.Close()
	brokers := strings.Join(cluster.ListenAddrs(), ",")

	code, out, errOut := run(t, "run", "--brokers", brokers, "--rate", "1000", "--count", "200", "--report", "json")
	require.Zero(t, code, errOut)
	var report publish.Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.EqualValues(t, 200, report.Acknowledged.Samples)

	code, out, errOut = run(t, "run", "--brokers", brokers, "--rate", "1000", "--count", "20")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "sent 20 in")
	require.Contains(t, errOut, "ids run-", "each run has ids of its own")
}

func TestRunInterrupted(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "requests"))
	require.NoError(t, err)
	defer cluster.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	code := Main(ctx, []string{"run", "--brokers", strings.Join(cluster.ListenAddrs(), ","), "--rate", "0.0001", "--count", "2"}, &out, writerFunc(func(p []byte) {
		if bytes.Contains(p, []byte("publishing")) {
			cancel()
		}
	}))
	require.Equal(t, 1, code)
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// What print writes can be piped into kcat as it is.
func TestPrintFeedsKcat(t *testing.T) {
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Skip("kcat is not installed")
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "requests"))
	require.NoError(t, err)
	defer cluster.Close()
	code, printed, _ := run(t, "print", "--count", "300")
	require.Zero(t, code)

	produce := exec.CommandContext(t.Context(), kcat, "-P", "-b", cluster.ListenAddrs()[0], "-t", "requests")
	produce.Stdin = strings.NewReader(printed)
	out, err := produce.CombinedOutput()
	require.NoError(t, err, "%s", out)

	consumed, err := exec.CommandContext(t.Context(), kcat, "-C", "-e", "-q", "-b", cluster.ListenAddrs()[0], "-t", "requests").Output()
	require.NoError(t, err)
	want, got := strings.Split(strings.TrimSpace(printed), "\n"), strings.Split(strings.TrimSpace(string(consumed)), "\n")
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}
