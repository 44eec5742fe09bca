package libchdb

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// codeUnknownException is ClickHouse's own code for an error it has no code for.
const codeUnknownException = 1002

// Exception is an error of the engine.
type Exception struct {
	Code    int
	Message string // without the "Code: N. DB::Exception: " in front, with the symbolic name at its end
}

// Error gives the text as ClickHouse writes it.
func (e *Exception) Error() string {
	return fmt.Sprintf("Code: %d. DB::Exception: %s", e.Code, e.Message)
}

var (
	exceptionStart = regexp.MustCompile(`^Code: (\d+)\. DB::[A-Za-z]*Exception: `)
	// exceptionTwice is the tail of a message the engine's client side has wrapped a second time.
	exceptionTwice = regexp.MustCompile(`(?s)^(.*)( \([A-Z0-9_]+\)) \(version [^()]*(?:\([^()]*\))?\)\.?( \([A-Z0-9_]+\))$`)
)

func parseException(text string) *Exception {
	e := &Exception{Code: codeUnknownException, Message: strings.TrimSpace(text)}
	for wrapped := false; ; wrapped = true {
		m := exceptionStart.FindStringSubmatch(e.Message)
		if m == nil {
			break
		}
		if code, err := strconv.Atoi(m[1]); err == nil && code > 0 {
			e.Code = code
		}
		e.Message = e.Message[len(m[0]):]
		if wrapped {
			if m := exceptionTwice.FindStringSubmatch(e.Message); m != nil && m[2] == m[3] {
				e.Message = m[1] + m[2]
			}
		}
	}
	return e
}
