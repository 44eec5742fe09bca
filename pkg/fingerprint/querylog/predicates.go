package querylog

import (
	"encoding/json"
	"strings"

	"github.com/pointsman/pointsman/pkg/shape"
)

// appendPredicates writes the conditions that can prune. It is on the path of every statement, so that it writes the
// common case by hand: texts that JSON takes as they are.
func appendPredicates(dst []byte, preds []shape.Predicate) []byte {
	for i, p := range preds {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"table":`...), p.Table.String())
		dst = appendText(append(dst, `,"column":`...), p.Column)
		dst = appendText(append(dst, `,"op":`...), string(p.Op))
		if !p.Value.IsZero() {
			dst = appendValue(append(dst, `,"value":`...), p.Value)
		}
		dst = append(dst, '}')
	}
	return dst
}

func appendValue(dst []byte, v shape.Value) []byte {
	switch list := v.List(); {
	case list != nil:
		dst = append(dst, '[')
		for i, one := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, one)
		}
		return append(dst, ']')
	case v.IsText():
		return appendText(dst, v.String())
	}
	raw, err := v.MarshalJSON()
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}

func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return append(dst, encoded(s)...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// unescape appends the text that a JSON string stands for, its quotes taken off. ok is false for an escape that JSON does
// not know or that is half of a pair; encoding/json then says what becomes of it.
func unescape(dst []byte, s string) (out []byte, ok bool) {
	for i := 0; i < len(s); i++ {
		k := strings.IndexByte(s[i:], '\\')
		if k < 0 {
			return append(dst, s[i:]...), true
		}
		dst = append(dst, s[i:i+k]...)
		i += k + 1
		if i >= len(s) {
			return dst, false
		}
		switch s[i] {
		case '"', '\\', '/':
			dst = append(dst, s[i])
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		default: // \u and what is wrong
			var part string
			if len(s)-i < 5 || json.Unmarshal([]byte(`"`+s[i-1:i+5]+`"`), &part) != nil || part == "\uFFFD" {
				return dst, false
			}
			dst = append(dst, part...)
			i += 4
		}
	}
	return dst, true
}
