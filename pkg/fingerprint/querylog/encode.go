package querylog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
)

// fixed is the part of a line that is the same for all statements of a fingerprint.
type fixed struct {
	Statement   shape.Statement `json:"statement"`
	Command     string          `json:"command,omitempty"`
	ReadOnly    bool            `json:"readOnly"`
	Effect      shape.Effect    `json:"effect,omitempty"`
	Tables      []string        `json:"tables"`
	WriteTables []string        `json:"writeTables"`
	JoinTables  int             `json:"joinTables"`
	GroupBy     bool            `json:"groupBy"`
	Window      bool            `json:"window"`
	UDF         bool            `json:"udf"`
	UDFs        []string        `json:"udfs,omitempty"`
}

// render writes once what every line of the fingerprint repeats.
func (e *entry) render() {
	s := e.template.Unbound()
	e.head = append(e.head, `"fingerprint":"`...)
	e.head = append(e.head, e.id.String()...)
	e.head = append(e.head, `","canonical":`...)
	e.head = append(e.head, encoded(e.canonical)...)
	f := fixed{
		Statement: s.Statement, Command: s.Command, ReadOnly: s.ReadOnly, Effect: s.Effect, Tables: shape.Names(s.Tables),
		WriteTables: shape.Names(s.WriteTables), JoinTables: s.JoinTables, GroupBy: s.GroupBy, Window: s.HasWindow(), UDF: s.HasUDF(), UDFs: s.UDFs,
	}
	if f.Statement == "" {
		f.Statement = shape.Other
	}
	body := encoded(f)
	e.body = body[1 : len(body)-1] // without its braces
	e.source = append(e.source, `,"source":"`...)
	e.source = append(append(e.source, s.Source...), `","bucket":"`...)
}

// encoded is v as JSON, with < and > as they are: SQL is full of them.
func encoded(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null") // texts and numbers always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// append writes the line of one statement.
func (w *worker) append(dst, id []byte, e *entry, r lex.Result, sql string) []byte {
	dst = append(dst, '{')
	if len(id) > 0 {
		dst = append(append(append(dst, `"id":`...), id...), ',')
	}
	dst = append(dst, e.head...)
	dst = append(dst, `,"hintHash":"`...)
	if r.Hint != 0 {
		var h [8]byte
		for i := range h {
			h[i] = byte(r.Hint >> (56 - 8*i))
		}
		dst = hex.AppendEncode(dst, h[:])
	}
	dst = append(dst, `",`...)
	dst = append(dst, e.body...)
	b := &w.binding
	dst = appendBound(append(dst, `,"limit":`...), b.Limit, b.HasLimit)
	dst = appendBound(append(dst, `,"offset":`...), b.Offset, b.HasOffset)
	dst = append(dst, `,"prunable":[`...)
	if e.template.HasPredicates() {
		dst = appendPredicates(dst, b.Predicates(sql))
	}
	dst = append(dst, ']')
	dst = append(dst, e.source...)
	dst = b.Bucket.Append(dst)
	return append(dst, "\"}\n"...)
}

func appendBound(dst []byte, n int64, ok bool) []byte {
	if !ok {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}

// appendError writes the line of a statement that could not be read.
func appendError(dst, id []byte, number int64, err error) []byte {
	line := struct {
		ID    json.RawMessage `json:"id,omitempty"`
		Line  int64           `json:"line"`
		Error string          `json:"error"`
	}{json.RawMessage(id), number, err.Error()}
	return append(append(dst, encoded(line)...), '\n')
}
