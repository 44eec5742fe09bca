package workload

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

var measure = flag.Bool("measure", false, "measure every query of the workload and rewrite the table in README.md")

const (
	tableStart = "<!-- measured: go test ./loadgen/workload -run TestMeasure -measure -->\n"
	tableEnd   = "<!-- end of measured -->\n"
)

// cost is what a query of a kind took on one thread: mean processor time of the engine's process, median time; and the
// most memory seen on one and on two threads, and the most rows.
type cost struct {
	name         string
	arrivals     int
	cpu, time    time.Duration
	peak1, peak2 int64
	rows         int
}

// TestMeasure fills the README's table. Memory is polled, so a short query's peak may be missed: it is a lower bound.
func TestMeasure(t *testing.T) {
	if !*measure {
		t.Skip("run with -measure")
	}
	one := startPool(t, chdb.Config{Name: "one", Settings: map[string]string{"max_threads": "1"}})
	two := startPool(t, chdb.Config{Name: "two", Settings: map[string]string{"max_threads": "2"}})
	spilling := func(threads string) pool {
		return startPool(t, chdb.Config{Name: "spill" + threads, Settings: map[string]string{
			"max_threads": threads, "max_bytes_before_external_group_by": "80000000", "max_bytes_ratio_before_external_group_by": "0",
		}})
	}
	spillOne, spillTwo := spilling("1"), spilling("2")
	arrivals, err := Generate(Options{Seed: 1})
	require.NoError(t, err)
	texts := map[string][]string{}
	for _, a := range arrivals {
		name := string(a.Kind)
		if a.Kind == CAB {
			name += " " + a.Task.Tags[1]
		}
		texts[name] = append(texts[name], a.Task.SQL)
	}
	var costs []cost
	total := time.Duration(0)
	for name, sqls := range texts {
		c := measureOne(t, name, sqls, one, two)
		costs = append(costs, c)
		if name == string(Scan) || name == string(Transformation) {
			c = measureOne(t, name+", spilling", sqls, spillOne, spillTwo)
			costs = append(costs, c)
		}
		total += c.cpu * time.Duration(c.arrivals)
	}
	slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.name, b.name) })
	var b strings.Builder
	b.WriteString("| query | arrivals | processor | time | memory | memory, 2 threads | rows |\n|---|---|---|---|---|---|---|\n")
	for _, c := range costs {
		fmt.Fprintf(&b, "| %s | %d | %d ms | %d ms | %s | %s | %d |\n", c.name, c.arrivals, c.cpu.Milliseconds(), c.time.Milliseconds(), megabytes(c.peak1), megabytes(c.peak2), c.rows)
	}
	fmt.Fprintf(&b, "\nAll arrivals together, scans and transformation spilling: %.0f s of one processor.\n", total.Seconds())
	raw, err := os.ReadFile("README.md")
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(raw), tableStart)
	require.True(t, found)
	_, after, found := strings.Cut(rest, tableEnd)
	require.True(t, found)
	require.NoError(t, os.WriteFile("README.md", []byte(before+tableStart+b.String()+tableEnd+after), 0o644))
}

func measureOne(t *testing.T, name string, sqls []string, one, two pool) cost {
	c := cost{name: name, arrivals: len(sqls)}
	var times []time.Duration
	before := processorTime(t, one.pid)
	const runs = 22 // every question of the agent once
	for i := range runs {
		start := time.Now()
		rows, err := one.query(sqls[i%len(sqls)])
		require.NoError(t, err, "%s", sqls[i%len(sqls)])
		times = append(times, time.Since(start))
		c.rows = max(c.rows, len(rows))
	}
	c.cpu = (processorTime(t, one.pid) - before) / runs
	slices.Sort(times)
	c.time = times[len(times)/2]
	for i := range min(len(sqls), runs) {
		c.peak1 = max(c.peak1, peak(t, one, sqls[i]))
		c.peak2 = max(c.peak2, peak(t, two, sqls[i]))
	}
	return c
}

// processorTime is what a process has used, in the kernel's ticks of 10 ms.
func processorTime(t *testing.T, pid int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(raw), ") ")
	require.True(t, found)
	fields := strings.Fields(rest)
	total := int64(0)
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		require.NoError(t, err)
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond
}

// peak runs a query and polls the engine for the most memory it has held.
func peak(t *testing.T, p pool, sql string) int64 {
	done := make(chan error, 1)
	go func() {
		_, err := p.query(sql, "query_id", "measured")
		done <- err
	}()
	most := int64(0)
	for {
		select {
		case err := <-done:
			require.NoError(t, err)
			return most
		default:
		}
		rows, err := p.query("SELECT max(peak_memory_usage) FROM system.processes WHERE query_id = 'measured'")
		require.NoError(t, err)
		n, err := strconv.ParseInt(rows[0], 10, 64)
		require.NoError(t, err)
		most = max(most, n)
	}
}

func megabytes(n int64) string {
	if n < 1_000_000 {
		return "< 1 MB"
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}
