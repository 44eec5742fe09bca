package server

import (
	"io"
	"strings"
)

func newStringReader(s string) io.Reader { return strings.NewReader(s) }

// newlineAfter keeps the statement in the URL apart from what the body adds to it.
func newlineAfter(s string) io.Reader { return strings.NewReader(s + "\n") }
