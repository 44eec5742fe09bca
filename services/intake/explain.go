package intake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/problem"
)

// maxExplanation bounds what is read of the router's answer.
const maxExplanation = 8 << 20

const typeText = "text/plain"

// newExplainer makes the client that asks the router. Its requests carry the trace on.
func newExplainer(tel *telemetry.Telemetry) *http.Client {
	return &http.Client{
		Transport: otelhttp.NewTransport(&http.Transport{MaxIdleConnsPerHost: 16, Proxy: nil},
			otelhttp.WithTracerProvider(tel.TracerProvider()), otelhttp.WithPropagators(tel.Propagator())),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// explain is POST /v1/explain: what would become of a request, without running it. The router decides; here the caller is
// known and the request checked, as for a real one.
func (s *server) explain(w http.ResponseWriter, r *http.Request, p access.Principal) error {
	task, err := s.readTask(w, r, p)
	if err != nil {
		return err
	}
	if task.ID == "" {
		task.ID = "explain-" + ulid.Make().String()
	}
	if err := task.Validate(s.cfg.Requests.limits()); err != nil {
		return problem.OfTask(err)
	}
	want := pick(r.Header.Get("Accept"), typeJSON, typeText)
	if want == "" {
		return problem.New(problem.NotAcceptable, "an explanation is "+typeJSON+" or "+typeText)
	}
	if s.cfg.Explain.URL == "" {
		return problem.New(problem.ExplainUnavailable, "no router is configured to explain")
	}
	body, err := event.Marshal(task)
	if err != nil {
		return problem.OfJSON(err)
	}
	status, answer, err := s.askRouter(r.Context(), body, want)
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return problem.New(problem.ExplainTimeout, fmt.Sprintf("it took over %s", s.cfg.Explain.Timeout)).Because(err).After(retrySoon)
	case err != nil:
		return problem.New(problem.ExplainUnavailable, "").Because(err).After(retrySoon)
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return problem.New(problem.ExplainUnavailable, "the router is not ready to explain").After(retrySoon)
	case status == http.StatusBadRequest || status == http.StatusUnprocessableEntity:
		return problem.New(problem.InvalidFields, detailOf(answer))
	case status == http.StatusRequestEntityTooLarge:
		return problem.New(problem.TooLarge, detailOf(answer))
	case status != http.StatusOK:
		return problem.New(problem.ExplainFailed, "").Because(fmt.Errorf("the router answered %d: %s", status, detailOf(answer)))
	}
	w.Header().Set("Content-Type", want)
	if want == typeText {
		w.Header().Set("Content-Type", typeText+"; charset=utf-8")
	}
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(answer) // the client has gone: nobody to tell
	return nil
}

// detailOf takes the detail out of the router's own problem document.
func detailOf(answer []byte) string {
	var doc struct {
		Detail string `json:"detail"`
	}
	if json.Unmarshal(answer, &doc) != nil || doc.Detail == "" {
		return ""
	}
	return short(doc.Detail)
}

func (s *server) askRouter(ctx context.Context, body []byte, accept string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Explain.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.Explain.URL, bytes.NewReader(body))
	if err != nil {
		return 0, nil, fmt.Errorf("asking the router: %w", err)
	}
	req.Header.Set("Content-Type", typeJSON)
	req.Header.Set("Accept", accept)
	resp, err := s.explainer.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the router: %w", err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxExplanation))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the router's answer: %w", err)
	}
	return resp.StatusCode, answer, nil
}
