package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Keys of log attributes that mean the same in every service.
const (
	KeyService   = "service"
	KeyTask      = "task_id"
	KeyAttempt   = "attempt_id"
	KeySession   = "session_id"
	KeyTenant    = "tenant"
	KeyCluster   = "cluster"
	KeyRule      = "rule"
	KeyReason    = "reason"
	KeyClass     = "class"
	KeyTopic     = "topic"
	KeyPartition = "partition"
	KeyOffset    = "offset"
	KeyError     = "err"
	keyTrace     = "trace_id"
	keySpan      = "span_id"
)

// Err is the attribute of an error.
func Err(err error) slog.Attr { return slog.Any(KeyError, err) }

// SQL is query text in a log line. Only its length is written, since literals are users' data; a line at DEBUG has
// the text.
type SQL string

// LogValue hides the text.
func (s SQL) LogValue() slog.Value { return slog.StringValue(fmt.Sprintf("SQL of %d bytes", len(s))) }

const redacted = "[redacted]"

// secretKeys are attributes whose value is never written, whatever it is.
var secretKeys = map[string]bool{
	"password": true, "passwd": true, "secret": true, "token": true, "access_token": true, "bearer": true,
	"authorization": true, "api_key": true, "apikey": true, "credential": true, "credentials": true,
	"private_key": true, "cookie": true, "set_cookie": true,
}

// userinfo finds user:password@ in a URL, as drivers put it into their errors.
var userinfo = regexp.MustCompile(`(://)[^/\s@]+@`)

// Redact takes the credentials out of every URL in a text.
func Redact(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return userinfo.ReplaceAllString(text, "${1}"+redacted+"@")
}

// NewLogger builds the logger of a process.
func NewLogger(w io.Writer, cfg LogConfig) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.Level, ReplaceAttr: replaceAttr}
	if cfg.Format == LogJSON {
		return slog.New(handler{slog.NewJSONHandler(w, opts)})
	}
	return slog.New(handler{slog.NewTextHandler(w, opts)})
}

// replaceAttr sees every attribute, those in groups too, with LogValue applied.
func replaceAttr(_ []string, a slog.Attr) slog.Attr {
	if secretKeys[strings.ReplaceAll(strings.ToLower(a.Key), "-", "_")] {
		a.Value = slog.StringValue(redacted)
		return a
	}
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(Redact(a.Value.String()))
	case slog.KindAny:
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(Redact(err.Error()))
		}
	}
	return a
}

// handler adds the ids of the trace in the context, and shows SQL on DEBUG lines.
type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, Redact(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if text, ok := a.Value.Any().(SQL); ok && r.Level < slog.LevelInfo {
			a.Value = slog.StringValue(string(text))
		}
		out.AddAttrs(a)
		return true
	})
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		out.AddAttrs(slog.String(keyTrace, span.TraceID().String()), slog.String(keySpan, span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, out)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
