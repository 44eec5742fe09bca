package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/services/executor"
)

// streamResult is how fast a large result is stored, beside the driver that reads the same one and drops it.
type streamResult struct {
	Rows       int64   `json:"rows"`
	Bytes      int64   `json:"bytes"` // of the file
	OursPerSec float64 `json:"oursRowsPerSecond"`
	RawPerSec  float64 `json:"rawRowsPerSecond"`
	// Ratios are those of each round, and Ratio is their median.
	Ratio  float64   `json:"ratio"` // goal: 0.7
	Ratios []float64 `json:"ratios"`
	// AlikeRatios are beside a driver that has the answer packed and with checksums, as the executor's has.
	AlikeRatio  float64   `json:"alikeRatio"`
	AlikeRatios []float64 `json:"alikeRatios"`
	// Processor time for a row in nanoseconds: of this process (executor or driver), and of the engine's, which serves both.
	OursCPU       float64 `json:"oursCPUNanos"`
	RawCPU        float64 `json:"rawCPUNanos"`
	OursEngineCPU float64 `json:"oursEngineCPUNanos"`
	RawEngineCPU  float64 `json:"rawEngineCPUNanos"`
	// The heap while it is streamed: at a quarter, at three quarters, and at its highest between collections.
	HeapQuarterMB float64 `json:"heapQuarterMB"`
	HeapLateMB    float64 `json:"heapThreeQuartersMB"`
	HeapPeakMB    float64 `json:"heapPeakMB"`
}

// String says it in a line.
func (r *streamResult) String() string {
	return fmt.Sprintf("streaming %d rows, %.2f GB: %.0f rows/s, the driver alone %.0f rows/s: %.2f (rounds %.2f); a driver with checksums: %.2f (rounds %.2f); processor time a row %.0f ns and %.0f ns, "+
		"of the engine %.0f ns and %.0f ns; heap %.0f MB at a quarter, %.0f MB at three, %.0f MB at most",
		r.Rows, float64(r.Bytes)/1e9, r.OursPerSec, r.RawPerSec, r.Ratio, r.Ratios, r.AlikeRatio, r.AlikeRatios,
		r.OursCPU, r.RawCPU, r.OursEngineCPU, r.RawEngineCPU, r.HeapQuarterMB, r.HeapLateMB, r.HeapPeakMB)
}

func measureStream(ctx context.Context, w *world, o options) (*streamResult, error) {
	b, err := w.start(ctx, "stream", 1, nil, executor.Hooks{})
	if err != nil {
		return nil, err
	}
	defer b.stop()
	sql := fmt.Sprintf("SELECT number, randomPrintableASCII(%d) AS text FROM numbers(%d)", o.width, o.rows)
	r := &streamResult{}
	var ours, raw []side
	for i := range o.rounds {
		one, err := w.measure(o.rows, func() error { return rawStream(ctx, w.engine.Options(), sql, o.rows) })
		if err != nil {
			return nil, err
		}
		raw = append(raw, one)
		checked := w.engine.Options()
		checked.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
		alike, err := w.measure(o.rows, func() error { return rawStream(ctx, checked, sql, o.rows) })
		if err != nil {
			return nil, err
		}
		id := fmt.Sprintf("large%d", i)
		heaps := watchHeap()
		one, err = w.measure(o.rows, func() error {
			if err := b.decide(ctx, id, sql); err != nil {
				return err
			}
			return b.await(ctx, 1)
		})
		seen := heaps()
		if err != nil {
			return nil, err
		}
		ours = append(ours, one)
		r.Ratios = append(r.Ratios, ours[i].perSec/raw[i].perSec)
		r.AlikeRatios = append(r.AlikeRatios, ours[i].perSec/alike.perSec)
		b.mu.Lock()
		res := b.outcomes[id].Result
		b.mu.Unlock()
		if res == nil || res.Rows != int64(o.rows) || res.Truncated {
			return nil, fmt.Errorf("the result is not whole: %+v", res)
		}
		if err := os.Remove(filepath.Join(b.results, res.File)); err != nil { // the rounds are alike: none finds the disk fuller
			return nil, err
		}
		r.Rows, r.Bytes = res.Rows, res.Bytes
		if n := len(seen); n > 0 {
			r.HeapQuarterMB, r.HeapLateMB, r.HeapPeakMB = max(r.HeapQuarterMB, seen[n/4]), max(r.HeapLateMB, seen[n*3/4]), max(r.HeapPeakMB, slices.Max(seen))
		}
	}
	o1, r1 := best(ours), best(raw)
	r.OursPerSec, r.OursCPU, r.OursEngineCPU = o1.perSec, o1.cpu, o1.engineCPU
	r.RawPerSec, r.RawCPU, r.RawEngineCPU = r1.perSec, r1.cpu, r1.engineCPU
	r.Ratio, r.AlikeRatio = median(r.Ratios), median(r.AlikeRatios)
	return r, nil
}

// side is what one of the two took in one round.
type side struct {
	perSec         float64 // rows
	cpu, engineCPU float64 // nanoseconds a row, of this process and of the engine's
}

func best(sides []side) side {
	return slices.MaxFunc(sides, func(a, b side) int { return cmp.Compare(a.perSec, b.perSec) })
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func (w *world) measure(rows int, f func() error) (side, error) {
	cpu, engine, began := cpuOf(os.Getpid()), cpuOf(w.engine.Pid()), time.Now()
	if err := f(); err != nil {
		return side{}, err
	}
	n := float64(rows)
	return side{
		perSec: n / time.Since(began).Seconds(), cpu: float64(cpuOf(os.Getpid())-cpu) / n, engineCPU: float64(cpuOf(w.engine.Pid())-engine) / n,
	}, nil
}

// cpuOf is the processor time that a process has taken so far, 0 where there is no /proc.
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may have blanks
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second on every Linux
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// rawStream reads a result with the driver and nothing else.
func rawStream(ctx context.Context, opts *clickhouse.Options, sql string, want int) error {
	conn, err := clickhouse.Open(opts)
	if err != nil {
		return err
	}
	defer conn.Close()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		var number uint64
		var text string
		if err := rows.Scan(&number, &text); err != nil {
			return err
		}
		n++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n != want {
		return fmt.Errorf("the driver read %d rows of %d", n, want)
	}
	return nil
}

// watchHeap looks at the heap from time to time until it is asked for what it saw, in MB.
func watchHeap() func() []float64 {
	var seen []float64
	var wg sync.WaitGroup
	end := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				seen = append(seen, float64(m.HeapAlloc)/(1<<20))
			}
		}
	})
	return func() []float64 {
		close(end)
		wg.Wait()
		return seen
	}
}
