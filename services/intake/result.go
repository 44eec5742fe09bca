package intake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/pkg/telemetry"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/board"
	"github.com/pointsman/pointsman/services/intake/problem"
)

const typeJSON = rows.MediaJSON

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
	inline := full.Result.Inline
	if len(inline) == 0 {
		inline = json.RawMessage("[]")
	}
	describe(w, *full.Result)
	wanted := rows.JSON
	var task query.Task
	if json.Unmarshal(view.Task, &task) == nil && task.ResultFormat != "" {
		wanted = rows.Format(task.ResultFormat)
	}
	format := choose(r, wanted, rows.JSON, rows.NDJSON, rows.CSV, rows.Arrow)
	if format == "" {
		return notAcceptable(view.TaskID, rows.JSON, rows.NDJSON, rows.CSV, rows.Arrow)
	}
	if format == rows.JSON {
		return writeJSON(w, http.StatusOK, InlineResult{
			TaskID: view.TaskID, Columns: full.Result.Columns, Rows: inline, RowCount: full.Result.Rows, Truncated: full.Result.Truncated,
		})
	}
	var out bytes.Buffer
	if err := convert(bytes.NewReader(inline), true, &out, format, full.Result.Columns); err != nil {
		return err
	}
	w.Header().Set("Content-Type", format.Media())
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(out.Bytes()) // the client has gone: nobody to tell
	return nil
}

// convert writes rows that are kept as JSON in another format. Their numbers are rounded by no step.
func convert(from io.Reader, array bool, to io.Writer, format rows.Format, columns []event.Column) error {
	w, err := rows.NewWriter(format, to, columns)
	if err != nil {
		return err
	}
	return errors.Join(rows.Read(from, array, w.Write), w.Close())
}

// choose is the format that the request's Accept header takes, the wanted one first; "" if it takes none.
func choose(r *http.Request, wanted rows.Format, offers ...rows.Format) rows.Format {
	media := []string{wanted.Media()}
	for _, f := range offers {
		if f != wanted {
			media = append(media, f.Media())
		}
	}
	return rows.FormatOf(pick(r.Header.Get("Accept"), media...))
}

func notAcceptable(taskID string, offers ...rows.Format) error {
	media := make([]string, len(offers))
	for i, f := range offers {
		media[i] = f.Media()
	}
	return problem.New(problem.NotAcceptable, "this result can be had as "+strings.Join(media, ", ")).About(taskID)
}

// serveFile streams a result file: as it was written, whole or the range that is asked for, or in another format where its own is
// NDJSON.
func (s *server) serveFile(w http.ResponseWriter, r *http.Request, taskID string, result event.Result) error {
	if result.ExpiresAt != nil && !s.now().Before(*result.ExpiresAt) {
		return problem.New(problem.ResultExpired, "it was kept until "+result.ExpiresAt.UTC().Format(time.RFC3339)).About(taskID)
	}
	own := rows.Format(result.Format)
	offers := []rows.Format{own}
	if own == rows.NDJSON {
		offers = append(offers, rows.CSV, rows.Arrow)
	}
	format := choose(r, own, offers...)
	if format == "" {
		return notAcceptable(taskID, offers...)
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
	w.Header().Set("Content-Type", format.Media())
	w.Header().Set("Cache-Control", "private, no-store")
	steady := newSteady(w, s.cfg.Results.Stall)
	defer steady.done()
	if format == own {
		http.ServeContent(steady, r, "", time.Time{}, file)
		return nil
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if err := convert(bufio.NewReaderSize(file, 64<<10), false, steady, format, result.Columns); err != nil {
		s.tel.Log.WarnContext(r.Context(), "sending a result broke off", telemetry.KeyTask, taskID, telemetry.Err(err))
		panic(http.ErrAbortHandler) // an answer has begun: its reader must not take what came for the whole
	}
	return nil
}

// steady lets an answer take as long as its reader needs, as long as the reader takes something from time to time. One that has
// gone without a word would otherwise hold its connection, and the open file, for ever.
type steady struct {
	http.ResponseWriter
	conn  *http.ResponseController
	stall time.Duration
}

func newSteady(w http.ResponseWriter, stall time.Duration) *steady {
	return &steady{ResponseWriter: w, conn: http.NewResponseController(w), stall: stall}
}

// Write gives the reader until the stall for these bytes.
func (s *steady) Write(p []byte) (int, error) {
	_ = s.conn.SetWriteDeadline(time.Now().Add(s.stall))
	return s.ResponseWriter.Write(p)
}

// done leaves the connection to its next request.
func (s *steady) done() { _ = s.conn.SetWriteDeadline(time.Time{}) }

// describe says of a result what its body can't.
func describe(w http.ResponseWriter, r event.Result) {
	w.Header().Set("Pointsman-Rows", strconv.FormatInt(r.Rows, 10))
	w.Header().Set("Pointsman-Truncated", strconv.FormatBool(r.Truncated))
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
