// Package problem writes the intake's errors as RFC 9457 problem documents: one shape for people and programs, with a
// code of a closed list and the fields that are wrong.
package problem

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
)

// ContentType is the media type of a problem.
const ContentType = "application/problem+json"

// Code is what went wrong, for programs. It is also a metric label, so the list is closed.
type Code string

// The codes, by status. Syntax is 400: the text can't be read as a request. Meaning is 422: it can, and asks for what
// can't be.
const (
	NotJSON            Code = "not_json"            // 400
	WrongType          Code = "wrong_type"          // 400
	BadParameter       Code = "bad_parameter"       // 400
	Unauthorized       Code = "unauthorized"        // 401
	WrongTenant        Code = "wrong_tenant"        // 403
	UnknownTenant      Code = "unknown_tenant"      // 403
	UnknownTask        Code = "unknown_task"        // 404
	UnknownPath        Code = "unknown_path"        // 404
	NoResult           Code = "no_result"           // 404
	MethodNotAllowed   Code = "method_not_allowed"  // 405
	NotAcceptable      Code = "not_acceptable"      // 406
	IDConflict         Code = "id_conflict"         // 409
	NotFinished        Code = "not_finished"        // 409
	AlreadyEnded       Code = "already_ended"       // 409
	TaskExpired        Code = "task_expired"        // 410
	ResultExpired      Code = "result_expired"      // 410
	TooLarge           Code = "too_large"           // 413
	UnsupportedMedia   Code = "unsupported_media"   // 415
	InvalidFields      Code = "invalid_fields"      // 422
	RateLimited        Code = "rate_limited"        // 429
	TooManyWaiting     Code = "too_many_waiting"    // 429
	Internal           Code = "internal"            // 500
	ExplainFailed      Code = "explain_failed"      // 502
	BrokerUnavailable  Code = "broker_unavailable"  // 503
	Unconfirmed        Code = "unconfirmed"         // 503
	CatchingUp         Code = "catching_up"         // 503
	ExplainUnavailable Code = "explain_unavailable" // 503
	ExplainTimeout     Code = "explain_timeout"     // 504
	typePrefix              = "urn:pointsman:problem:"
)

var table = map[Code]struct {
	status int
	title  string
}{
	NotJSON:            {400, "The body is not a JSON object."},
	WrongType:          {400, "A field has the wrong type."},
	BadParameter:       {400, "A parameter can't be read."},
	Unauthorized:       {401, "A valid token is needed."},
	WrongTenant:        {403, "The token is of another tenant."},
	UnknownTenant:      {403, "The tenant is not known here."},
	UnknownTask:        {404, "There is no such task."},
	UnknownPath:        {404, "There is nothing at this path."},
	NoResult:           {404, "The task has ended without a result."},
	MethodNotAllowed:   {405, "The method is not allowed here."},
	NotAcceptable:      {406, "No representation fits the Accept header."},
	IDConflict:         {409, "The id or key was used for another request."},
	NotFinished:        {409, "The task has not ended yet."},
	AlreadyEnded:       {409, "The task has ended already."},
	TaskExpired:        {410, "The task is not kept any more."},
	ResultExpired:      {410, "The result is not kept any more."},
	TooLarge:           {413, "The request is too large."},
	UnsupportedMedia:   {415, "The body must be JSON."},
	InvalidFields:      {422, "The request asks for what can't be."},
	RateLimited:        {429, "Too many requests of this tenant."},
	TooManyWaiting:     {429, "Too many requests are waiting."},
	Internal:           {500, "Something went wrong here."},
	ExplainFailed:      {502, "The router could not explain the request."},
	BrokerUnavailable:  {503, "Requests can't be taken in right now."},
	Unconfirmed:        {503, "The request is written, but not confirmed yet."},
	CatchingUp:         {503, "The tasks are still being read."},
	ExplainUnavailable: {503, "The router can't be reached."},
	ExplainTimeout:     {504, "The router did not answer in time."},
}

// Codes returns all codes.
func Codes() []Code {
	codes := make([]Code, 0, len(table))
	for c := range table {
		codes = append(codes, c)
	}
	return codes
}

// Status is the HTTP status of a code.
func (c Code) Status() int {
	if row, ok := table[c]; ok {
		return row.status
	}
	return http.StatusInternalServerError
}

// Field is one field that is wrong.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Problem is the document.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   Code   `json:"code"`
	Detail string `json:"detail,omitempty"`
	// Errors lists the fields that are wrong.
	Errors []Field `json:"errors,omitempty"`
	// TaskID names the task that the problem is about, also when it is not certain that it was taken in.
	TaskID string `json:"taskId,omitempty"`
	// RetryAfterSeconds says when trying again may help; it is the Retry-After header too.
	RetryAfterSeconds int64 `json:"retryAfterSeconds,omitempty"`

	// Allow lists the methods of a path, for 405.
	Allow string `json:"-"`
	// Cause is what is logged and never sent.
	Cause error `json:"-"`
}

// New makes a problem of a code.
func New(c Code, detail string) *Problem {
	row, ok := table[c]
	if !ok {
		c, row = Internal, table[Internal]
	}
	return &Problem{Type: typePrefix + string(c), Title: row.title, Status: row.status, Code: c, Detail: detail}
}

// Error makes a problem an error, so that it can be returned through layers.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Title
	}
	return p.Detail
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// Because adds what is logged and not sent.
func (p *Problem) Because(err error) *Problem { p.Cause = err; return p }

// After adds when to try again, in whole seconds and at least one.
func (p *Problem) After(d time.Duration) *Problem {
	p.RetryAfterSeconds = max(1, int64(math.Ceil(d.Seconds())))
	return p
}

// About adds the task.
func (p *Problem) About(taskID string) *Problem { p.TaskID = taskID; return p }

// Of turns any error into a problem: what is none yet is internal, and its text is not sent.
func Of(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return New(Internal, "").Because(err)
}

// OfTask turns the error of query.Task's Validate into a problem that lists every field.
func OfTask(err error) *Problem {
	code := InvalidFields
	if errors.Is(err, query.ErrTooLarge) {
		code = TooLarge
	}
	p := New(code, "")
	for _, e := range leaves(err) {
		if field, ok := errors.AsType[*query.FieldError](e); ok {
			p.Errors = append(p.Errors, Field{Field: field.Field, Message: field.Message})
			continue
		}
		p.Errors = append(p.Errors, Field{Message: e.Error()})
	}
	if len(p.Errors) > 0 {
		p.Detail = p.Errors[0].Field + ": " + p.Errors[0].Message
	}
	return p
}

func leaves(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, leaves(e)...)
		}
		return out
	}
	return []error{err}
}

// OfJSON turns a decoding error into a problem.
func OfJSON(err error) *Problem {
	p := New(NotJSON, query.DescribeJSONError(err))
	var wrong *json.UnmarshalTypeError
	var noTime *time.ParseError
	switch {
	case errors.As(err, &wrong):
		p = New(WrongType, query.DescribeJSONError(err))
		p.Errors = []Field{{Field: wrong.Field, Message: p.Detail}}
	case errors.As(err, &noTime):
		p = New(WrongType, "submittedAt: a time such as 2026-11-30T09:15:00Z is expected") // the only time of a Task
		p.Errors = []Field{{Field: "submittedAt", Message: p.Detail}}
	}
	return p
}

// Write sends the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfterSeconds, 10))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="pointsman"`)
	}
	data, err := json.Marshal(p)
	if err != nil {
		data = []byte(`{"title":"Something went wrong here.","status":500}`)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(data, '\n')) // the client has gone: nobody to tell
}
