package attempt_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/attempt"
	"github.com/pointsman/pointsman/pkg/failure"
)

func TestOverrun(t *testing.T) {
	sla := attempt.Bounds{SLA: 10 * time.Second, Factor: 2}
	bytes := attempt.Bounds{EstimatedBytes: 100, ReadBytes: 500}
	both := attempt.Bounds{SLA: 10 * time.Second, Factor: 2, EstimatedBytes: 100, ReadBytes: 500}
	memory := attempt.Bounds{MemoryBytes: 1000}
	for _, c := range []struct {
		name string
		b    attempt.Bounds
		p    attempt.Progress
		want failure.Class
	}{
		{"nothing is bounded", attempt.Bounds{}, attempt.Progress{Since: time.Hour, Running: time.Hour, ReadBytes: new(int64(1 << 60)), PeakMemoryBytes: new(int64(1 << 60))}, ""},
		{"within all", both, attempt.Progress{Since: time.Second, Running: time.Second, ReadBytes: new(int64(10))}, ""},
		{"late", sla, attempt.Progress{Since: 21 * time.Second, Running: 20 * time.Second}, failure.SLAOverrun},
		{"late, but within the factor", sla, attempt.Progress{Since: 20 * time.Second, Running: 20 * time.Second}, ""},
		{"late because it stood in line", sla, attempt.Progress{Since: time.Minute, Running: 9 * time.Second}, ""},
		{"late in line and here", sla, attempt.Progress{Since: time.Minute, Running: 10 * time.Second}, failure.SLAOverrun},
		{"late, and nearly done", both, attempt.Progress{Since: time.Minute, Running: time.Minute, ReadBytes: new(int64(51))}, ""},
		{"late, and at its beginning", both, attempt.Progress{Since: time.Minute, Running: time.Minute, ReadBytes: new(int64(50))}, failure.SLAOverrun},
		{"late, and nearly done as the engine reckons", sla, attempt.Progress{Since: time.Minute, Running: time.Minute, Done: new(0.51)}, ""},
		{"late, and at its beginning as the engine reckons", both, attempt.Progress{Since: time.Minute, Running: time.Minute, ReadBytes: new(int64(51)), Done: new(0.5)}, failure.SLAOverrun},
		{"late, and nobody knows how far", both, attempt.Progress{Since: time.Minute, Running: time.Minute}, failure.SLAOverrun},
		{"at the bound of bytes", bytes, attempt.Progress{ReadBytes: new(int64(500))}, ""},
		{"over the estimate", bytes, attempt.Progress{ReadBytes: new(int64(501))}, failure.EstimateOverrun},
		{"bytes unknown", bytes, attempt.Progress{Since: time.Hour, Running: time.Hour}, ""},
		{"at the bound of memory", memory, attempt.Progress{PeakMemoryBytes: new(int64(1000))}, ""},
		{"over its memory", memory, attempt.Progress{PeakMemoryBytes: new(int64(1001))}, failure.MemoryLimit},
		{"memory unknown", memory, attempt.Progress{}, ""},
	} {
		class, why := c.b.Overrun(c.p)
		require.Equal(t, c.want, class, c.name)
		require.Equal(t, c.want != "", why != "", c.name)
		require.Equal(t, c.b != attempt.Bounds{}, c.b.Any(), c.name)
	}
}

// Reading less, taking less and running shorter never makes an overrun of what was none; what is unknown is none either.
func TestLessIsNeverAnOverrun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 1000)
		span := rapid.Map(rapid.IntRange(0, 100), func(s int) time.Duration { return time.Duration(s) * time.Second })
		b := attempt.Bounds{SLA: span.Draw(t, "sla"), Factor: float64(rapid.IntRange(1, 4).Draw(t, "factor")), ReadBytes: size.Draw(t, "bytes"), MemoryBytes: size.Draw(t, "memory")}
		p := attempt.Progress{Since: span.Draw(t, "since"), Running: span.Draw(t, "running"), ReadBytes: new(size.Draw(t, "read")), PeakMemoryBytes: new(size.Draw(t, "peak"))}
		if class, _ := b.Overrun(p); class != "" {
			require.True(t, b.Any())
			return
		}
		less := attempt.Progress{Since: p.Since / 2, Running: p.Running / 2, ReadBytes: new(*p.ReadBytes / 2), PeakMemoryBytes: new(*p.PeakMemoryBytes / 2)}
		class, _ := b.Overrun(less)
		require.Empty(t, class)
		class, _ = b.Overrun(attempt.Progress{Since: p.Since, Running: p.Running})
		require.Empty(t, class)
	})
}
