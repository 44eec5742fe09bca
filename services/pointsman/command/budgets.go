package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pointsman/pointsman/pkg/budget"
	"github.com/pointsman/pointsman/pkg/signal"
)

type budgetsCmd struct {
	Show budgetsShowCmd `cmd:"" help:"What sessions and tenants have used of their budgets, and what is left."`
}

type budgetsShowCmd struct {
	URL     string `help:"Where a router is. It has the sessions of its own partitions, and its view of all tenants." default:"http://127.0.0.1:8402"`
	Tenant  string `help:"Only this tenant."`
	Session string `help:"Only this session."`
	Output  string `help:"text or json." default:"text" enum:"text,json" short:"o"`
}

// budgetsAnswer is what a router says.
type budgetsAnswer struct {
	Partitions []int32 `json:"partitions"`
	Of         int     `json:"of"`
	Sessions   []struct {
		budget.View
		Left budget.Left `json:"left"`
	} `json:"sessions"`
	Tenants []budget.TenantView `json:"tenants"`
	More    bool                `json:"more"`
}

// Run asks the router and prints what it says.
func (c *budgetsShowCmd) Run(ctx context.Context, s *streams) error {
	q := url.Values{}
	for name, value := range map[string]string{"tenant": c.Tenant, "session": c.Session} {
		if value != "" {
			q.Set(name, value)
		}
	}
	answer, err := doorFlags{URL: c.URL}.call(ctx, http.MethodGet, "/v1/budgets?"+q.Encode())
	if err != nil {
		return err
	}
	if c.Output == "json" {
		_, err = s.out.Write(answer)
		return err
	}
	var b budgetsAnswer
	if err := json.Unmarshal(answer, &b); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if b.More {
		_, _ = fmt.Fprintln(s.err, "There are more sessions; --tenant and --session choose.")
	}
	if len(b.Partitions) < b.Of {
		_, _ = fmt.Fprintf(s.err, "This router keeps the sessions of %d of %d partitions; other routers have the rest.\n", len(b.Partitions), b.Of)
	}
	return b.print(s.out)
}

func (b budgetsAnswer) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TENANT\tSESSION\tOPEN\tQUERIES\tLEFT\tBYTES\tLEFT\tRAN\tLEFT\tLAST HEARD OF")
	for _, v := range b.Sessions {
		bytes := v.Usage.Bytes
		unknown := ""
		if v.Usage.UnknownBytes > 0 {
			unknown = fmt.Sprintf(" (+%d unknown)", v.Usage.UnknownBytes)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s%s\t%s\t%s\t%s\t%s\n", dash(v.Tenant), printable(v.Session), v.Open,
			v.Usage.Queries, leftOf(v.Left.Queries), signal.Of(float64(bytes), signal.Bytes, "", v.LastAt), unknown, leftOf(v.Left.Bytes),
			millis(&v.Usage.WallMs), leftOf(v.Left.WallMs), v.LastAt.UTC().Format(time.DateTime))
	}
	if len(b.Tenants) > 0 {
		_, _ = fmt.Fprintln(w, "\nTENANT\tRUNNING\tQUERIES\tBYTES\tBATCH PRINCIPALS")
	}
	for _, t := range b.Tenants {
		var principals []string
		for _, name := range slices.Sorted(maps.Keys(t.Principals)) {
			principals = append(principals, fmt.Sprintf("%s %d", printable(name), t.Principals[name]))
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", dash(t.Tenant), t.Running, t.Queries, signal.Of(float64(t.Bytes), signal.Bytes, "", time.Now()),
			first(strings.Join(principals, ", "), "-"))
	}
	return w.Flush()
}

// leftOf is what is left of a limit; a limit that is none leaves everything.
func leftOf(v signal.Value) string {
	if v.State() == signal.Absent {
		return "-"
	}
	return v.String()
}
