package demo

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the report for a person.
func (r Report) Print(w io.Writer) error {
	s := r.Summary
	out := &sticky{w: w}
	out.line("")
	out.line("%d tasks, %d outcomes: %d succeeded, %d failed, %d expired, %d rejected; %d attempts", s.Tasks, s.Outcomes, s.Succeeded, s.Failed,
		s.Expired, s.Rejected, s.Attempts)
	out.line("lost %d, conflicting outcomes %d", s.Lost, s.ConflictingOutcomes)
	out.line("SLA hit rate %.1f %% of %d tasks, end to end; submission to engine start %.0f ms (p50), %.0f ms (p99)", 100*s.SLAHitRate, s.SLASamples,
		s.P50SubmitToStartMs, s.P99SubmitToStartMs)
	out.line("")
	out.line("What happened")
	out.table([]string{"", ""}, [][]string{
		{"rescued by batch after interactive's memory limit", fmt.Sprint(s.RescuedByBatch)},
		{"sent to batch at once because of history", fmt.Sprint(s.RoutedByHistory)},
		{"sent elsewhere because a queue was too long for the SLA", fmt.Sprint(s.ReroutedForQueue)},
		{"rejected by a session's budget", fmt.Sprint(s.BudgetRejected)},
		{"lost an attempt to the killed engine, and succeeded all the same", fmt.Sprint(s.SurvivedEngineKill)},
	})
	out.line("")
	out.line("First decisions by cluster and reason")
	var rows [][]string
	for _, x := range r.Routes {
		where := x.Cluster
		if x.Kind != "route" {
			where = "(" + x.Kind + ")"
		}
		rows = append(rows, []string{where, x.Reason, fmt.Sprint(x.Tasks)})
	}
	out.table([]string{"cluster", "reason", "tasks"}, rows)
	out.line("")
	out.line("Where tasks ended")
	rows = nil
	for _, p := range r.Pools {
		rows = append(rows, []string{
			p.Cluster, fmt.Sprint(p.Tasks), fmt.Sprintf("%.1f %%", 100*p.HitRate), fmt.Sprintf("%.0f / %.0f", p.QueueP50, p.QueueP95),
			fmt.Sprintf("%.0f / %.0f", p.ExecP50, p.ExecP95), fmt.Sprint(p.Retried),
		})
	}
	out.table([]string{"cluster", "tasks", "in time", "queue ms p50/p95", "run ms p50/p95", "tried more than once"}, rows)
	if len(r.Rejections) > 0 {
		out.line("")
		out.line("What a rejected client reads")
		for _, x := range r.Rejections {
			out.line("  %d x %s: %s", x.Tasks, x.Code, x.Text)
		}
	}
	if r.Told != "" {
		out.line("")
		out.line("One decision in words")
		out.line("%s", r.Told)
	}
	return out.err
}

// sticky writes lines and keeps the first error.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) line(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.w, format+"\n", args...)
	}
}

func (s *sticky) table(head []string, rows [][]string) {
	if s.err != nil {
		return
	}
	t := tabwriter.NewWriter(s.w, 0, 0, 3, ' ', 0)
	write := func(cells []string) {
		for i, c := range cells {
			if i > 0 {
				_, _ = fmt.Fprint(t, "\t")
			} else {
				_, _ = fmt.Fprint(t, "  ")
			}
			_, _ = fmt.Fprint(t, c)
		}
		_, _ = fmt.Fprintln(t)
	}
	if head[0] != "" {
		write(head)
	}
	for _, row := range rows {
		write(row)
	}
	s.err = t.Flush()
}
