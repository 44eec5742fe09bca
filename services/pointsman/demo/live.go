package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// show draws what is going on: on a terminal one line that is rewritten, elsewhere a line every few seconds.
func show(ctx context.Context, opts Options, b *board, total int) {
	if opts.Progress == nil {
		return
	}
	every := 5 * time.Second
	if opts.Terminal {
		every = 250 * time.Millisecond
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	start := time.Now()
	said := ""
	for {
		line, last := b.line(total, time.Since(start))
		switch {
		case opts.Terminal:
			if last != said && last != "" {
				_, _ = fmt.Fprintf(opts.Progress, "\r\x1b[K  %s\n", last)
			}
			_, _ = fmt.Fprintf(opts.Progress, "\r\x1b[K%s\r", cut(line, opts.width()))
		default:
			if last != said && last != "" {
				_, _ = fmt.Fprintf(opts.Progress, "  %s\n", last)
			}
			_, _ = fmt.Fprintln(opts.Progress, line)
		}
		said = last
		select {
		case <-ctx.Done():
			end(opts.Progress, opts.Terminal)
			return
		case <-ticker.C:
		}
	}
}

// cut keeps a line within the terminal: one that wraps can't be rewritten in place.
func cut(line string, width int) string {
	if width > 1 && len(line) >= width {
		return line[:width-1]
	}
	return line
}

// width is the terminal's now; people resize windows.
func (o Options) width() int {
	if o.Width == nil {
		return 80
	}
	return o.Width()
}

func end(w io.Writer, terminal bool) {
	if terminal {
		_, _ = fmt.Fprint(w, "\r\x1b[K")
	}
}

// line is the state in one line, and what happened last.
func (b *board) line(total int, since time.Duration) (line, last string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	perCluster := map[string]int{}
	for _, d := range b.decided {
		if d.Kind == event.Route {
			perCluster[d.Cluster]++
		}
	}
	running := map[string]int{}
	for _, cluster := range b.running {
		running[cluster]++
	}
	ended := map[event.Status]int{}
	hits := 0
	for _, o := range b.ended {
		ended[o.Status]++
		if o.SLAHit {
			hits++
		}
	}
	var parts []string
	for _, cluster := range slices.Sorted(maps.Keys(perCluster)) {
		parts = append(parts, fmt.Sprintf("%d to %s (%d run)", perCluster[cluster], cluster, running[cluster]))
	}
	rate := "-"
	if n := len(b.ended) - ended[event.Rejected]; n > 0 {
		rate = fmt.Sprintf("%.1f %% of %d", 100*float64(hits)/float64(n), n)
	}
	return fmt.Sprintf("%3.0fs %d/%d ended | %s | later attempts %d | rejected %d | failed %d | in time %s", since.Seconds(), len(b.ended), total,
		strings.Join(parts, ", "), b.rescued, ended[event.Rejected], ended[event.Failed], rate), b.last
}
