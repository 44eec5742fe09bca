package postgres

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// The server's texts are exact, and its settings (ISO dates, hexadecimal bytes, floats as short as they read back the same) are
// those that prepare has made.

func readBool(text string) any { return text == "t" }

func readInt(text string) any {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	return n
}

func readFloat(text string) any {
	f, err := strconv.ParseFloat(text, 64) // "NaN" and "Infinity" too
	if err != nil {
		return text
	}
	return f
}

// readNumeric keeps every digit. What is no number (NaN, infinite) is text.
func readNumeric(text string) any {
	if strings.ContainsAny(text, "NaIy") {
		return text
	}
	return json.Number(text)
}

func readBytes(text string) any {
	if digits, ok := strings.CutPrefix(text, `\x`); ok {
		return "0x" + digits
	}
	return text
}

// readDate gives a day as its midnight in UTC. Days before year 1 and past 9999, and infinity, are text.
func readDate(text string) any {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return text
	}
	return t
}

// readInstant reads a time with the offset of the session's zone, which may have minutes and, long ago, seconds.
func readInstant(text string) any {
	for _, layout := range []string{"2006-01-02 15:04:05Z07", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07:00:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return text
}

// readLocal keeps a time without a zone as it is: no instant can be told from it.
func readLocal(text string) any {
	day, clock, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(clock, " ") {
		return text
	}
	return day + "T" + clock
}

// readArray reads {1,NULL,"a b"}, nested as deep as it is. Bounds that do not begin at 1, as in [0:1]={1,2}, are left out: no
// format of results could carry them.
func readArray(text string, elem *kind) ([]any, bool) {
	if strings.HasPrefix(text, "[") {
		_, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, false
		}
		text = rest
	}
	p := arrayParser{text: text, elem: elem}
	v, ok := p.array()
	return v, ok && p.at == len(text)
}

type arrayParser struct {
	text string
	at   int
	elem *kind
}

func (p *arrayParser) array() ([]any, bool) {
	if !p.take('{') {
		return nil, false
	}
	out := []any{}
	if p.take('}') {
		return out, true
	}
	for {
		v, ok := p.item()
		if !ok {
			return nil, false
		}
		out = append(out, v)
		if p.take('}') {
			return out, true
		}
		if !p.take(',') {
			return nil, false
		}
	}
}

func (p *arrayParser) item() (any, bool) {
	switch {
	case p.at >= len(p.text):
		return nil, false
	case p.text[p.at] == '{':
		return p.array()
	case p.text[p.at] == '"':
		return p.quoted()
	}
	end := strings.IndexAny(p.text[p.at:], ",}")
	if end <= 0 {
		return nil, false
	}
	word := p.text[p.at : p.at+end]
	p.at += end
	if word == "NULL" { // the word itself would be in quotes
		return nil, true
	}
	return p.elem.value(word), true
}

func (p *arrayParser) quoted() (any, bool) {
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			return p.elem.value(b.String()), true
		case '\\':
			p.at++
			if p.at == len(p.text) {
				return nil, false
			}
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return nil, false
}

func (p *arrayParser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}
