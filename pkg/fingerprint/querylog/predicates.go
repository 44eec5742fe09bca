package querylog

import (
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
