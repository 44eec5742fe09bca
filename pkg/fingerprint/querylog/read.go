package querylog

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

const (
	// chunk is how much is read at once.
	chunk = 256 << 10
	// maxStatement bounds one statement or line; what is longer is cut there.
	maxStatement = 64 << 20
	// maxBlock is how far the END of a routine is looked for; without one, its first semicolon ends it.
	maxBlock = 1 << 20
)

// read cuts the log into batches.
func (p *pipeline) read(r io.Reader, stop <-chan struct{}) error {
	s := &source{r: r}
	first := true
	c := cutter{d: p.o.Dialect, delimiter: ";"}
	for {
		grew, err := s.more()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		last := err != nil
		if first {
			if err := readable(s.buf); err != nil {
				return err
			}
			first = false
		}
		if grew || last {
			var b *batch
			var used int
			if p.o.Input == JSONL {
				b, used = c.lines(s.buf, last)
			} else {
				b, used = c.statements(s.buf, last)
			}
			s.buf = s.buf[used:]
			if b != nil && !p.send(b, stop) {
				return nil
			}
		}
		if last {
			return nil
		}
	}
}

// readable says what is wrong with a log that is no text of its own, and how to make it one.
func readable(head []byte) error {
	if len(head) < 4 {
		return nil
	}
	switch text := string(head[:4]); {
	case text[:2] == "\xff\xfe" && text[3] == 0, text[:2] == "\xfe\xff" && text[2] == 0:
		return errors.New("the log is UTF-16: convert it first, as iconv -f UTF-16 -t UTF-8 does")
	case text[:3] == "\x1f\x8b\x08":
		return errors.New("the log is compressed: unpack it first, as zcat does")
	case text == "\x28\xb5\x2f\xfd":
		return errors.New("the log is compressed: unpack it first, as zstdcat does")
	}
	return nil
}

// source holds what was read and not yet cut.
type source struct {
	r   io.Reader
	buf []byte
	// due is the length from which cutting is worth another try: a statement that did not end is not searched again for
	// every chunk, but when it has doubled.
	due int
}

// more reads another chunk, and says whether cutting is due.
func (s *source) more() (bool, error) {
	if s.due < len(s.buf) {
		s.due = 2 * len(s.buf) // the last cut left this much
	}
	n := len(s.buf)
	if cap(s.buf)-n < chunk {
		grown := make([]byte, n, 2*n+2*chunk)
		copy(grown, s.buf)
		s.buf = grown
	}
	k, err := io.ReadFull(s.r, s.buf[n:n+chunk])
	s.buf = s.buf[:n+k]
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return len(s.buf) >= s.due || len(s.buf) >= maxStatement, err
}

// cutter cuts a log into statements or lines.
type cutter struct {
	d         lex.Dialect
	delimiter string
	number    int64
	copying   bool // rows of COPY .. FROM STDIN follow
	endless   int  // that many bytes were searched for the END of a routine, in vain
}

// lines takes whole lines.
func (c *cutter) lines(buf []byte, last bool) (*batch, int) {
	end := bytes.LastIndexByte(buf, '\n') + 1
	if last || end == 0 && len(buf) >= maxStatement {
		end = len(buf)
	}
	if end == 0 {
		return nil, 0
	}
	b := &batch{lines: string(buf[:end]), first: c.number + 1}
	b.result.Bytes = int64(end)
	c.number += int64(strings.Count(b.lines, "\n"))
	return b, end
}

// statements takes whole statements.
func (c *cutter) statements(buf []byte, last bool) (*batch, int) {
	text := string(buf)
	b := &batch{first: c.number + 1}
	pos := 0
	for pos < len(text) {
		next, ok := c.one(b, text[pos:], last)
		if !ok {
			break
		}
		pos += next
		c.endless = max(c.endless-next, 0)
	}
	if pos == 0 && len(text) >= maxStatement {
		b.statements = append(b.statements, text[:maxStatement])
		pos = maxStatement
	}
	if pos == 0 {
		return nil, 0
	}
	c.number += int64(len(b.statements))
	b.result.Bytes = int64(pos)
	return b, pos
}

// one takes one statement, or a command of the client, off the front of a text.
func (c *cutter) one(b *batch, text string, last bool) (int, bool) {
	if c.copying {
		return c.rows(text, last)
	}
	lead := lex.Lead(text, c.d)
	if end := c.client(text, lead, last); end != lead {
		return max(end, 0), end > 0
	}
	end, next, ok, _ := lex.Split(text, c.d, c.delimiter)
	if ok && c.delimiter == ";" && c.endless == 0 && lex.HasBlock(text[min(lead, end):end]) {
		e, n, whole := lex.SplitBlock(text[lead:min(lead+maxBlock, len(text))], c.d)
		switch {
		case whole:
			end, next = lead+e, lead+n
		case !last && len(text)-lead < maxBlock:
			return 0, false
		default:
			c.endless = lead + maxBlock
		}
	}
	if !ok && !last {
		return 0, false
	}
	if sql := strings.TrimSpace(text[:end]); sql != "" {
		b.statements = append(b.statements, sql)
		c.copying = copies(sql)
	}
	return next, true
}

// client reads a line that is for the client and no statement, at the start of one: DELIMITER, psql's backslash, and what
// MySQL writes at the head of a slow-query log. It returns where the line ends, lead if there is none, and a negative number
// if the text ends before the line does.
func (c *cutter) client(text string, lead int, last bool) int {
	if lead == len(text) {
		return lead
	}
	line := text[lead:]
	delimiter := hasWord(line, "delimiter")
	if !delimiter && !mayBeClient[line[0]] {
		return lead
	}
	line, _, ended := strings.Cut(line, "\n")
	switch {
	case delimiter:
		if !ended && !last {
			return -1
		}
		if d := strings.TrimSpace(line[len("delimiter"):]); d != "" {
			c.delimiter = d
		}
	case line[0] == '\\' && len(line) > 1 && line[1] >= 'a' && line[1] <= 'z' && line[1] != 'g', slowHeader(strings.TrimSpace(line)):
		if !ended && !last {
			return -1
		}
	default:
		return lead
	}
	return min(lead+len(line)+1, len(text))
}

// mayBeClient are the bytes that a line for the client may begin with, beside DELIMITER.
var mayBeClient = [256]bool{'\\': true, '/': true, 'T': true, 'C': true, 'D': true, 'm': true}

// slowHeader says that a line is one of the three that a server of MySQL's kind writes when it opens its slow-query log.
func slowHeader(line string) bool {
	return strings.HasSuffix(line, "started with:") && strings.Contains(line, ", Version: ") ||
		strings.HasPrefix(line, "Tcp port: ") || strings.HasPrefix(line, "TCP Port: ") ||
		strings.HasPrefix(line, "Time ") && strings.HasSuffix(line, " Argument") && strings.Contains(line, " Id Command")
}

// rows skips the data of COPY .. FROM STDIN, which ends with a line of a backslash and a dot.
func (c *cutter) rows(text string, last bool) (int, bool) {
	if strings.HasPrefix(text, "\\.") {
		c.copying = false
		return 2, true
	}
	if k := strings.Index(text, "\n\\."); k >= 0 {
		c.copying = false
		return k + 3, true
	}
	if last {
		return len(text), true
	}
	// keep what may be the start of the end
	if n := len(text) - 2; n > 0 {
		return n, true
	}
	return 0, false
}

// copies says that a statement is PostgreSQL's COPY .. FROM STDIN, whose rows follow it in a dump.
func copies(sql string) bool {
	if !hasWord(sql, "copy") || len(sql) > 4096 {
		return false
	}
	words := strings.Fields(strings.ToLower(sql))
	for i := 1; i < len(words); i++ {
		if words[i] == "stdin" && words[i-1] == "from" {
			return true
		}
	}
	return false
}

// hasWord says that a text begins with a word, without regard to case.
func hasWord(s, word string) bool {
	return len(s) > len(word) && strings.EqualFold(s[:len(word)], word) && (s[len(word)] == ' ' || s[len(word)] == '\t')
}
