package intake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
	"github.com/pointsman/pointsman/services/intake/problem"
)

const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
	typeArrow  = "application/vnd.apache.arrow.stream"
)

// resultFolder serves files of the folder that the executor writes to, and nothing outside of it.
type resultFolder struct{ root *os.Root }

// openResults opens the folder, which may be missing until the first result is written.
func openResults(folder string) (*resultFolder, error) {
	if folder == "" {
		return &resultFolder{}, nil
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("making the result folder: %w", err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the result folder: %w", err)
	}
	return &resultFolder{root: root}, nil
}

func (f *resultFolder) close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// open opens a result file. The name comes from a topic that others may write to: os.Root follows no path, and no
// symbolic link, that leads out of the folder.
func (f *resultFolder) open(name string) (*os.File, error) {
	if f.root == nil {
		return nil, fs.ErrNotExist
	}
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("the result file %q is not within the folder", short(name))
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("the result file %q is no regular file", short(name)), err, file.Close())
	}
	return file, nil
}

// getResult is GET /v1/tasks/{id}/result.
func (s *server) getResult(w http.ResponseWriter, r *http.Request, p access.Principal) error {
	view, err := s.find(r, p)
	if err != nil {
		return err
	}
	switch o := view.Outcome; {
	case o == nil:
		return problem.New(problem.NotFinished, "it is "+view.State+"; follow "+linksOf(view.TaskID).Events+" until the outcome").
			About(view.TaskID).After(retrySoon)
	case o.Status != event.Succeeded:
		return problem.New(problem.NoResult, "it ended as "+string(o.Status)+whyEnded(o)).About(view.TaskID)
	case o.Result == nil:
		return problem.New(problem.NoResult, "it succeeded, and a statement of its kind gives no result").About(view.TaskID)
	case o.Result.File != "":
		return s.serveFile(w, r, view.TaskID, *o.Result)
	default:
		return serveInline(w, r, view)
	}
}

func whyEnded(o *event.Outcome) string {
	switch {
	case o.Rejection != nil:
		return ": " + o.Rejection.Message
	case o.Failure != nil:
		return ": " + o.Failure.Message
	default:
		return ""
	}
}

// InlineResult is a small result as JSON.
type InlineResult struct {
	TaskID    string          `json:"taskId"`
	Columns   []event.Column  `json:"columns"`
	Rows      json.RawMessage `json:"rows"`
	RowCount  int64           `json:"rowCount"`
	Truncated bool            `json:"truncated"`
}

func serveInline(w http.ResponseWriter, r *http.Request, view board.View) error {
	var full event.Outcome
	for _, ev := range view.Of(board.Outcomes) {
		if err := json.Unmarshal(ev.Data, &full); err != nil {
			return fmt.Errorf("reading the outcome again: %w", err)
		}
	}
	if full.Result == nil {
		return problem.New(problem.NoResult, "").About(view.TaskID)
	}
	rows := full.Result.Inline
	if len(rows) == 0 {
		rows = json.RawMessage("[]")
	}
	describe(w, *full.Result)
	switch pick(r.Header.Get("Accept"), typeJSON, typeNDJSON) {
	case typeJSON:
		return writeJSON(w, http.StatusOK, InlineResult{
			TaskID: view.TaskID, Columns: full.Result.Columns, Rows: rows, RowCount: full.Result.Rows, Truncated: full.Result.Truncated,
		})
	case typeNDJSON:
		return writeLines(w, rows)
	default:
		return problem.New(problem.NotAcceptable, "an inline result is "+typeJSON+" or "+typeNDJSON).About(view.TaskID)
	}
}

// writeLines writes each row on a line of its own. Rows pass through as they are, so that no number is rounded.
func writeLines(w http.ResponseWriter, rows json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(rows, &list); err != nil {
		return fmt.Errorf("reading inline rows: %w", err)
	}
	var out bytes.Buffer
	for _, row := range list {
		if err := json.Compact(&out, row); err != nil {
			return fmt.Errorf("reading an inline row: %w", err)
		}
		out.WriteByte('\n')
	}
	w.Header().Set("Content-Type", typeNDJSON)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(out.Bytes()) // the client has gone: nobody to tell
	return nil
}

// serveFile streams a result file, whole or the range that is asked for.
func (s *server) serveFile(w http.ResponseWriter, r *http.Request, taskID string, result event.Result) error {
	if result.ExpiresAt != nil && !s.now().Before(*result.ExpiresAt) {
		return problem.New(problem.ResultExpired, "it was kept until "+result.ExpiresAt.UTC().Format(time.RFC3339)).About(taskID)
	}
	media := mediaOf(result.Format)
	if pick(r.Header.Get("Accept"), media) == "" {
		return problem.New(problem.NotAcceptable, "this result is "+media).About(taskID)
	}
	file, err := s.results.open(result.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return problem.New(problem.ResultExpired, "the result file is not there any more, or not on this machine").About(taskID).Because(err)
	case err != nil:
		return problem.New(problem.Internal, "").About(taskID).Because(err)
	}
	defer file.Close()
	describe(w, result)
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "private, no-store")
	// A large result may take as long as its client needs; one that reads nothing at all is cut by TCP.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	http.ServeContent(w, r, "", time.Time{}, file)
	return nil
}

// describe says of a result what its body can't.
func describe(w http.ResponseWriter, r event.Result) {
	w.Header().Set("Pointsman-Rows", strconv.FormatInt(r.Rows, 10))
	w.Header().Set("Pointsman-Truncated", strconv.FormatBool(r.Truncated))
}

func mediaOf(format string) string {
	switch format {
	case "ndjson":
		return typeNDJSON
	case "arrow":
		return typeArrow
	default:
		return "application/octet-stream"
	}
}

// pick returns the first of the offers that an Accept header takes, or "". A header that can't be read takes anything.
func pick(accept string, offers ...string) string {
	if strings.TrimSpace(accept) == "" {
		return offers[0]
	}
	best, bestQ := "", 0.0
	for part := range strings.SplitSeq(accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if v, err := strconv.ParseFloat(params["q"], 64); err == nil {
			q = v
		}
		for _, offer := range offers {
			if matches(media, offer) && q > bestQ {
				best, bestQ = offer, q
			}
		}
	}
	return best
}

func matches(pattern, media string) bool {
	prefix, wild := strings.CutSuffix(pattern, "/*")
	return pattern == "*/*" || pattern == media || (wild && strings.HasPrefix(media, prefix+"/"))
}
