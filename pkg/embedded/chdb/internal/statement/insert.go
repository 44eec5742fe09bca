package statement

import "strings"

// Insert is an INSERT whose rows stand behind its text.
type Insert struct {
	before string // up to where FROM INFILE belongs
	after  string // its SETTINGS clause, if any
	format string
	input  *inputCall
	// Data is the offset of the first byte of the rows.
	Data int
}

// inputCall is the table function input() of an INSERT SELECT, which reads the rows behind the text.
type inputCall struct {
	start, end int // of the whole call
	args       string
}

// SQL is the statement with its rows taken from the file at path.
func (i *Insert) SQL(path string) string {
	if i.input != nil {
		return i.before[:i.input.start] + "file(" + Quote(path) + ", " + Quote(i.format) + ", " + i.input.args + ")" + i.before[i.input.end:]
	}
	return i.before + " FROM INFILE " + Quote(path) + " " + i.after + " FORMAT " + i.format
}

// Format is the format of the rows.
func (i *Insert) Format() string { return i.format }

type insertStep uint8

const (
	insertStart insertStep = iota
	insertTarget
	insertName // the name of the table is open: a dot may follow
	insertRest
	insertFormat
	insertNot
)

// insertReader follows the tokens of an INSERT until it knows where its rows begin.
type insertReader struct {
	step     insertStep
	settings int // offset of the SETTINGS clause, 0 when there is none
	format   int // offset of the word FORMAT
	selects  bool
	call     inputCall
	callOpen int // 1: the word input, 2: inside its brackets
}

// read takes the next token and gives the Insert once its rows begin.
func (r *insertReader) read(text string, t token) *Insert {
	word := ""
	if t.kind == tokenWord {
		word = strings.ToUpper(text[t.start:t.end])
	}
	switch r.step {
	case insertStart:
		r.step = insertNot
		if word == "INSERT" {
			r.step = insertTarget
		}
	case insertTarget:
		if word != "INTO" && word != "TABLE" && word != "FUNCTION" && t.kind != tokenSymbol {
			r.step = insertName
		} else if t.kind == tokenSymbol {
			r.step = insertRest
		}
	case insertName:
		if t.kind == tokenSymbol && text[t.start] == '.' {
			r.step = insertTarget
			return nil
		}
		r.step = insertRest
		return r.rest(text, t, word)
	case insertRest:
		return r.rest(text, t, word)
	case insertFormat:
		format := text[t.start:t.end]
		if t.kind != tokenWord && t.kind != tokenQuoted {
			r.step = insertNot
			return nil
		}
		in := &Insert{before: text[:r.format], format: format, Data: skipLine(text, t.end)}
		if r.selects {
			call := r.call
			in.input = &call
		} else if r.settings > 0 {
			in.before, in.after = text[:r.settings], text[r.settings:r.format]
		}
		return in
	}
	return nil
}

func (r *insertReader) rest(text string, t token, word string) *Insert {
	if r.followCall(text, t, word) {
		return nil
	}
	if t.depth > 0 || word == "" {
		return nil
	}
	switch word {
	case "SETTINGS":
		if r.settings == 0 {
			r.settings = t.start
		}
	case "SELECT", "WITH", "WATCH":
		r.selects = true
	case "VALUES":
		if r.selects {
			return nil
		}
		in := &Insert{before: text[:t.start], format: "Values", Data: t.end}
		if r.settings > 0 {
			in.before, in.after = text[:r.settings], text[r.settings:t.start]
		}
		return in
	case "FORMAT":
		// A SELECT without input() has nothing to read from behind the text: FORMAT is then its own affair.
		if !r.selects || r.call.end > 0 {
			r.step, r.format = insertFormat, t.start
		}
	}
	return nil
}

// followCall looks for input(…) and says whether the token belonged to it.
func (r *insertReader) followCall(text string, t token, word string) bool {
	switch {
	case r.callOpen == 0 && word == "INPUT" && r.selects:
		r.callOpen, r.call.start = 1, t.start
		return true
	case r.callOpen == 1 && text[t.start] == '(':
		r.callOpen, r.call.end = 2, t.end
		return true
	case r.callOpen == 1:
		r.callOpen = 0
	case r.callOpen == 2 && text[t.start] == ')' && t.kind == tokenSymbol && strings.Count(text[r.call.start:t.start], "(")-strings.Count(text[r.call.start:t.start], ")") <= 1:
		r.call.args = strings.TrimSpace(text[r.call.end:t.start])
		r.call.end = t.end
		r.callOpen = 3
		return true
	}
	return r.callOpen == 2
}

// skipLine passes the spaces behind a format's name and at most one end of line, as ClickHouse does.
func skipLine(text string, pos int) int {
	for pos < len(text) && (text[pos] == ' ' || text[pos] == '\t' || text[pos] == '\f') {
		pos++
	}
	if pos < len(text) && text[pos] == '\r' {
		pos++
	}
	if pos < len(text) && text[pos] == '\n' {
		pos++
	}
	return pos
}
