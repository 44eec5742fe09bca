package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

type tasksCmd struct {
	doorFlags
	List   tasksListCmd   `cmd:"" help:"Tasks that changed last, as the front door knows them: those of the last hours. Older ones are in ClickHouse, view v_tasks."`
	Show   tasksShowCmd   `cmd:"" help:"Where a task is, what was tried, and why."`
	Cancel tasksCancelCmd `cmd:"" help:"Wish tasks cancelled."`
	Tail   tasksTailCmd   `cmd:"" help:"Follow a task to its end, or all tasks until you stop it."`
}

// doorFlags say where the front door is.
type doorFlags struct {
	URL   string `help:"Where the front door is." default:"http://127.0.0.1:8080"`
	Token string `help:"Bearer token." env:"POINTSMAN_TOKEN"`
}

// listedTask is a task in a list.
type listedTask struct {
	TaskID    string    `json:"taskId"`
	State     string    `json:"state"`
	Tenant    string    `json:"tenant"`
	User      string    `json:"user"`
	ChangedAt time.Time `json:"changedAt"`
	Cluster   string    `json:"cluster"`
	Attempts  int       `json:"attempts"`
	TotalMs   *int64    `json:"totalMs"`
	SLAHit    *bool     `json:"slaHit"`
}

type taskFilter struct {
	State   string `help:"Only tasks in this state; open means all that have not ended."`
	Tenant  string `help:"Only tasks of a tenant."`
	User    string `help:"Only tasks of a user."`
	Cluster string `help:"Only tasks whose last attempt is or was there."`
	Limit   int    `help:"At most so many." default:"50" short:"n"`
}

func (f taskFilter) query() string {
	q := url.Values{}
	for name, value := range map[string]string{"state": f.State, "tenant": f.Tenant, "user": f.User, "cluster": f.Cluster, "limit": strconv.Itoa(f.Limit)} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "/v1/tasks?" + q.Encode()
}

type tasksListCmd struct {
	taskFilter
	Output string `help:"text or json." default:"text" enum:"text,json" short:"o"`
}

// Run prints the list.
func (t tasksListCmd) Run(ctx context.Context, s *streams, c *cli) error {
	answer, err := c.Tasks.call(ctx, http.MethodGet, t.query())
	if err != nil {
		return err
	}
	if t.Output == "json" {
		_, err = s.out.Write(answer)
		return err
	}
	var list struct {
		Tasks []listedTask `json:"tasks"`
		More  bool         `json:"more"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TASK\tSTATE\tCLUSTER\tATTEMPTS\tTOTAL\tSLA\tTENANT\tUSER\tCHANGED")
	for _, t := range list.Tasks {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", printable(t.TaskID), printable(t.State), dash(t.Cluster), t.Attempts,
			millis(t.TotalMs), hit(t.SLAHit), dash(t.Tenant), dash(t.User), t.ChangedAt.UTC().Format(time.DateTime))
	}
	if list.More {
		_, _ = fmt.Fprintf(s.err, "There are more; --limit shows up to 1000.\n")
	}
	return w.Flush()
}

type tasksCancelCmd struct {
	IDs    []string `arg:"" name:"id" help:"The tasks."`
	Reason string   `help:"Why; it is kept with the wish."`
}

// Run wishes each of them cancelled.
func (t tasksCancelCmd) Run(ctx context.Context, s *streams, c *cli) error {
	var errs []error
	for _, id := range t.IDs {
		path := taskPath(id)
		if t.Reason != "" {
			path += "?reason=" + url.QueryEscape(t.Reason)
		}
		if _, err := c.Tasks.call(ctx, http.MethodDelete, path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
			continue
		}
		_, _ = fmt.Fprintf(s.out, "%s: the cancel is written; its outcome says whether it came in time\n", printable(id))
	}
	return errors.Join(errs...)
}

func taskPath(id string) string { return "/v1/tasks/" + url.PathEscape(id) }

// call asks the front door.
func (f doorFlags) call(ctx context.Context, method, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resp, err := f.open(ctx, method, path, "application/json")
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return answer, nil
}

// open sends a request; an answer that is a problem becomes an error with its detail.
func (f doorFlags) open(ctx context.Context, method, path, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(f.URL, "/")+path, nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Accept", accept)
	if f.Token != "" {
		req.Header.Set("Authorization", "Bearer "+f.Token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s (is pointsman up? see --url): %w", f.URL, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return nil, problemOf(resp.Status, answer)
}

// problemOf is the error in an answer.
func problemOf(status string, answer []byte) error {
	var p struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(answer, &p) == nil && p.Title != "" {
		return errors.New(strings.TrimSuffix(strings.TrimSuffix(p.Title, ".")+": "+p.Detail, ": "))
	}
	return fmt.Errorf("%s: %s", status, strings.TrimSpace(string(answer)))
}

// printable keeps what others wrote from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}

func dash(s string) string { return printable(first(s, "-")) }

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func millis(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return (time.Duration(*ms) * time.Millisecond).String()
}

func hit(h *bool) string {
	switch {
	case h == nil:
		return "-"
	case *h:
		return "hit"
	default:
		return "missed"
	}
}
