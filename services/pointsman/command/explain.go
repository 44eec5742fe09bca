package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/lifecycle"
	"github.com/pointsman/pointsman/pkg/query"
)

type explainCmd struct {
	SQL     string   `arg:"" optional:"" help:"The query; - or nothing reads it from standard input."`
	URL     string   `help:"Where the front door is." default:"http://127.0.0.1:8080"`
	Token   string   `help:"Bearer token." env:"POINTSMAN_TOKEN"`
	Tenant  string   `help:"Tenant that asks." default:"me"`
	User    string   `help:"User that asks."`
	SLA     float64  `help:"SLA in seconds; the policy's default if 0."`
	Tags    []string `help:"Tags of the client." name:"tag"`
	Session string   `help:"Session id."`
	Class   string   `help:"Class of the session: human, batch or agent."`
	Dialect string   `help:"Dialect of the text."`
	Dataset string   `help:"Logical data set asked about."`
	Engine  string   `help:"Engine or cluster that is wished for." name:"engine-hint"`

	Consistency string `help:"How fresh the data must be: eventual, read_your_writes or strong." enum:",eventual,read_your_writes,strong" default:""`
	CommitTS    *int64 `help:"Commit that a read of one's own writes must see, in the source's own unit." name:"commit-ts"`

	Output string `help:"text or json." default:"text" enum:"text,json" short:"o"`

	Task string `help:"Explain the recorded decisions of this task instead, from --data or --brokers." placeholder:"ID"`
	placeFlags
}

// Run asks for the decision and prints it.
func (c *explainCmd) Run(ctx context.Context, s *streams) error {
	if c.Task != "" {
		return c.recorded(ctx, s)
	}
	if c.given() || c.Prefix+c.From+c.To != "" {
		return &lifecycle.UsageError{Err: errors.New("--data, --brokers, --prefix, --from and --to say where and when a recorded --task was decided; without one the front door is asked")}
	}
	sql := c.SQL
	if sql == "" || sql == "-" {
		data, err := io.ReadAll(s.in)
		if err != nil {
			return fmt.Errorf("reading the query: %w", err)
		}
		sql = string(data)
	}
	t := query.Task{
		SQL: sql, Tenant: c.Tenant, User: c.User, Tags: c.Tags, Dialect: c.Dialect, Dataset: c.Dataset, EngineHint: c.Engine,
		Consistency: query.Consistency(c.Consistency), CommitTS: c.CommitTS,
	}
	if c.SLA != 0 {
		t.SLASeconds = &c.SLA
	}
	if c.Session != "" || c.Class != "" {
		t.Session = &query.Session{ID: c.Session, Class: query.SessionClass(c.Class)}
	}
	body, err := event.Marshal(t)
	if err != nil {
		return err
	}
	accept := "text/plain"
	if c.Output == "json" {
		accept = "application/json"
	}
	answer, err := call(ctx, c.URL+"/v1/explain", c.Token, accept, body)
	if err != nil {
		return err
	}
	_, err = s.out.Write(answer)
	return err
}

// call posts JSON and returns the answer; an answer that is a problem becomes an error with its detail.
func call(ctx context.Context, url, token, accept string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s (is pointsman up? see --url): %w", url, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode >= 300 {
		var problem struct {
			Title  string `json:"title"`
			Detail string `json:"detail"`
		}
		if json.Unmarshal(answer, &problem) == nil && problem.Title != "" {
			return nil, errors.New(strings.TrimSuffix(problem.Title+": "+problem.Detail, ": "))
		}
		return nil, fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
