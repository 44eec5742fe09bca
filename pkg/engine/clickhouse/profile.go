package clickhouse

import (
	"sync"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/pointsman/pointsman/pkg/event"
)

// profile gathers what the native protocol reports while a query runs. Over HTTP nothing calls it.
type profile struct {
	mu          sync.Mutex
	seen        bool
	rows, bytes int64
	peak        *int64
}

func (p *profile) options() []driver.QueryOption {
	return []driver.QueryOption{
		driver.WithProgress(func(progress *driver.Progress) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.seen = true
			p.rows += int64(progress.Rows)
			p.bytes += int64(progress.Bytes)
		}),
		driver.WithProfileEvents(func(events []driver.ProfileEvent) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, e := range events {
				if e.Name == "MemoryTrackerPeakUsage" {
					v := e.Value
					p.peak = &v
				}
			}
		}),
	}
}

func (p *profile) stats() event.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	var s event.Stats
	if p.seen {
		rows, bytes := p.rows, p.bytes
		s.ReadRows, s.ReadBytes = &rows, &bytes
	}
	s.PeakMemoryBytes = p.peak
	return s
}
