package shape

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// decode reads the constant that a literal spells. Whatever is not sure is no constant.
func decode(text string, c lex.Class, d lex.Dialect) (Value, bool) {
	switch c {
	case lex.Number:
		return decodeNumber(text)
	case lex.Bool:
		return BoolValue(len(text) == 4), true
	case lex.String:
		s, ok := decodeString(text, d)
		return StringValue(s), ok
	}
	return Value{}, false
}

// decodeNumber turns a number into JSON's spelling. Every digit stays.
func decodeNumber(text string) (Value, bool) {
	sign := ""
	for len(text) > 0 && (text[0] == '-' || text[0] == '+' || text[0] == ' ') {
		if text[0] == '-' {
			if sign == "" {
				sign = "-"
			} else {
				sign = ""
			}
		}
		text = text[1:]
	}
	text = strings.ReplaceAll(text, "_", "")
	if len(text) > 2 && text[0] == '0' && (text[1]|0x20 == 'x' || text[1]|0x20 == 'b') {
		n, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return Value{}, false
		}
		return NumberValue(sign + strconv.FormatUint(n, 10)), true
	}
	digits := strings.TrimRight(text, "lLsSyYdDfFbB")
	if digits != text && text[len(digits)]|0x20 == 'f' && strings.ContainsAny(digits, ".eE") {
		return Value{}, false // the nearest number of 32 bits is another one
	}
	text = digits
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	whole, rest := text, ""
	if i := strings.IndexAny(text, ".eE"); i >= 0 {
		whole, rest = text[:i], text[i:]
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if strings.HasPrefix(rest, ".") && (len(rest) == 1 || rest[1] < '0' || rest[1] > '9') {
		rest = rest[1:]
	}
	out := sign + whole + rest
	if !json.Valid([]byte(out)) {
		return Value{}, false
	}
	return NumberValue(out), true
}

// decodeString takes off quotes and escapes. The backslash in front of a wildcard of LIKE stays: that is for the pattern.
func decodeString(text string, d lex.Dialect) (string, bool) {
	if len(text) < 2 {
		return "", false
	}
	backslash, pattern := d.Backslash(), true
	switch c := text[0] | 0x20; {
	case text[0] == '\'' || text[0] == '"':
	case c == 'e' && text[1] == '\'':
		backslash, text = true, text[1:]
		pattern = false
	case c == 'n' && text[1] == '\'':
		text = text[1:]
	case c == 'q' && text[1] == '\'':
		if len(text) < 5 {
			return "", false
		}
		return text[3 : len(text)-2], true
	case c == 'r' && (text[1] == '\'' || text[1] == '"'):
		if text[len(text)-1] != text[1] {
			return "", false
		}
		return text[2 : len(text)-1], true
	case text[0] == '$':
		tag := strings.IndexByte(text[1:], '$') + 2
		if tag < 2 || len(text) < 2*tag {
			return "", false
		}
		if !strings.HasSuffix(text, text[:tag]) {
			return "", false // it never ends
		}
		return text[tag : len(text)-tag], true
	default:
		return "", false // bytes, or a text in another character set
	}
	quote := text[0]
	if len(text) < 2 || text[len(text)-1] != quote {
		return "", false
	}
	body := text[1 : len(text)-1]
	if strings.IndexByte(body, quote) < 0 && strings.IndexByte(body, '\\') < 0 {
		return body, true
	}
	if d == lex.Auto && strings.IndexByte(body, '\\') >= 0 {
		return "", false // whether it escapes is not known
	}
	var out strings.Builder
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == quote && d.Family() == "spark":
			return "", false // doubled, or two strings in a row: its versions differ
		case c == quote && i+1 < len(body):
			i++ // doubled
			out.WriteByte(c)
		case c == '\\' && backslash && i+1 < len(body):
			i++
			if c = body[i]; !pattern && (c == '%' || c == '_') {
				out.WriteByte(c)
			} else if !unescape(&out, c) {
				return "", false
			}
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), true
}

// unescape writes what a backslash and c mean. Forms that dialects disagree on are refused.
func unescape(out *strings.Builder, c byte) bool {
	switch c {
	case 'n':
		out.WriteByte('\n')
	case 't':
		out.WriteByte('\t')
	case 'r':
		out.WriteByte('\r')
	case '\\', '\'', '"', '`':
		out.WriteByte(c)
	case '%', '_':
		out.WriteByte('\\')
		out.WriteByte(c)
	case '0', 'b', 'Z', 'x', 'u', 'U', 'a', 'f', 'v', 'e', 'N', '1', '2', '3', '4', '5', '6', '7':
		return false
	default:
		out.WriteByte(c)
	}
	return true
}
