package workload

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

var cabRows = sync.OnceValues(func() ([]traceRow, error) { return readTrace(strings.NewReader(cabTrace)) })

var cabTemplates = sync.OnceValue(func() []string { return texts("cab") })

// cabSLA is generous for joins and tight for what reads one table: the trace has no SLA of its own.
var cabSLA = map[int]float64{1: 3, 4: 3, 6: 3, 11: 3, 12: 3, 13: 3, 14: 3, 15: 3, 16: 3, 22: 3}

const cabJoinSLA = 8

// cab takes count arrivals of the trace, evenly thinned so that the hour's peaks and lulls keep their form, and presses
// them into span. Above the number of reads in the trace, reads repeat.
func cab(r *rand.Rand, count int, span time.Duration) ([]Arrival, error) {
	rows, err := cabRows()
	if err != nil {
		return nil, err
	}
	out := make([]Arrival, 0, count)
	start := r.IntN(len(rows))
	for k := range count {
		row := rows[(k*len(rows)+start)/count%len(rows)]
		sql, err := bind(cabTemplates()[row.template-1], row.args...)
		if err != nil {
			return nil, fmt.Errorf("binding template %d: %w", row.template, err)
		}
		sla, ok := cabSLA[row.template]
		if !ok {
			sla = cabJoinSLA
		}
		out = append(out, Arrival{
			At:   time.Duration(float64(row.at) / float64(traceLength) * float64(span)),
			Kind: CAB,
			Task: request{
				sql: sql, queryType: "report", tenant: cabTenant(row.stream), user: fmt.Sprintf("analyst_%02d", row.stream),
				sla: sla, timeout: 120, tags: []string{"cab", fmt.Sprintf("q%02d", row.template)},
			}.task(),
		})
	}
	return out, nil
}

const cabStreams = 20

func cabTenant(stream int) string { return fmt.Sprintf("tenant_%02d", stream) }
