package querylog

import (
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint"
	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

// maxKnown bounds the bytes of fingerprints that all workers remember together; beyond its part, a worker starts afresh.
const maxKnown = 64 << 20

// worker reads statements. It has its own memory of fingerprints, so that workers share nothing.
type worker struct {
	o       Options
	known   map[known]*entry
	bytes   int // of what is known
	limit   int
	spans   lex.Spans
	binding shape.Binding
	object  object
}

// known is the identity of a text: its key, and the dialect that its shape was read in.
type known struct {
	key lex.Key
	d   lex.Dialect
}

// entry is what is written of every statement of one fingerprint.
type entry struct {
	id        fingerprint.ID
	canonical string
	template  *shape.Template
	head      []byte // from fingerprint to canonical
	body      []byte // what does not depend on literals
	source    []byte
}

func newWorker(o Options, workers int) *worker {
	return &worker{o: o, known: map[known]*entry{}, limit: maxKnown / workers}
}

// size is about what the entry takes in memory.
func (e *entry) size() int {
	return 512 + e.template.Size() + len(e.canonical) + cap(e.head) + cap(e.body) + cap(e.source)
}

// batch reads the statements of one batch.
func (w *worker) batch(b *batch) {
	if w.o.Top > 0 {
		b.counted = map[fingerprint.ID]*count{}
	}
	for i, sql := range b.statements {
		w.statement(b, strconv.AppendInt(nil, b.first+int64(i), 10), sql, w.o.Dialect)
	}
	number := b.first
	for rest := strings.TrimPrefix(b.lines, "\xef\xbb\xbf"); rest != ""; number++ { // files may begin with a byte order mark
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		w.line(b, number, line)
	}
	b.statements, b.lines = nil, ""
}

// line reads a line of JSON. What is wrong with it takes the place of its statement in the output.
func (w *worker) line(b *batch, number int64, line string) {
	o := &w.object
	err := o.parse(line)
	d := w.o.Dialect
	if err == nil && o.dialect != "" {
		d, err = lex.ParseDialect(o.dialect)
	}
	if err != nil {
		b.result.Bad++
		if w.o.Top == 0 {
			b.out = appendError(b.out, o.id, number, err)
		}
		return
	}
	w.statement(b, o.id, o.sql, d)
}

func (w *worker) statement(b *batch, id []byte, sql string, d lex.Dialect) {
	b.result.Statements++
	r := lex.Run(sql, d, lex.Key{}, &w.spans)
	e := w.entry(known{r.Key, d}, sql, d)
	if w.o.Top > 0 {
		c := b.counted[e.id]
		if c == nil {
			c = &count{entry: e}
			b.counted[e.id] = c
		}
		c.n++
		return
	}
	e.template.Bind(&w.binding, sql, d, r, &w.spans)
	b.out = w.append(b.out, id, e, r, sql)
}

// entry finds or makes what is written of a fingerprint. Its shape comes from the parser if that reads the text, and this
// does not depend on time: the output of a log is the same every time.
func (w *worker) entry(k known, sql string, d lex.Dialect) *entry {
	if e := w.known[k]; e != nil {
		return e
	}
	template := tidbast.Parse(sql, d)
	if template == nil {
		var spans lex.Spans
		template, _ = shape.Extract(sql, d, &spans)
	}
	fp := fingerprint.New(sql, d)
	e := &entry{id: fp.ID, canonical: fp.Canonical, template: template}
	e.render()
	n := e.size()
	if w.bytes += n; w.bytes > w.limit {
		clear(w.known)
		w.bytes = n
	}
	w.known[k] = e
	return e
}
