package postgres

import (
	"errors"
	"regexp"

	"github.com/pointsman/pointsman/pkg/engine"
)

// copies is a COPY from or to the client. The server would wait for a stream that nobody sends, or send one that is no rows.
var copies = regexp.MustCompile(`(?is)^(?:\s|--[^\n]*\n|/\*.*?\*/)*COPY\b.*\b(?:FROM\s+STDIN|TO\s+STDOUT)\b`)

// featureCode is SQLSTATE feature_not_supported, which the server would say of a statement that it can't run there.
const featureCode = "0A000"

// refuse says no to what can't be run, before anything is sent.
func refuse(sql string) error {
	if !copies.MatchString(sql) {
		return nil
	}
	return &engine.Error{
		Engine: Kind, Code: featureCode, Phase: engine.Answered,
		Err: errors.New("COPY FROM STDIN and COPY TO STDOUT need a stream of their own; use INSERT, SELECT, or a file of the server"),
	}
}
