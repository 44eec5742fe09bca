package http2_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/engine/wire/http2"
)

func frame(kind, flags byte, body string) string {
	n := len(body)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, 0, 0, 0, 1}) + body
}

// However the bytes are cut, the body and its end are seen once, in the write that completes the frame's header.
func TestFramesAreSeenHoweverTheyAreCut(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	before := preface + frame(4, 0, "settings") + frame(1, 4, "headers, \x00\x00\x00\x00\x01")
	first, last := frame(0, 0, "SELECT"), frame(0, 1, " 1")
	text := before + first + last
	bodyAt, endAt := len(before)+9, len(before)+len(first)+9
	rapid.Check(t, func(t *rapid.T) {
		var f http2.Frames
		for at := 0; at < len(text); {
			n := rapid.IntRange(1, min(12, len(text)-at)).Draw(t, "bytes")
			body, end := f.Next([]byte(text[at : at+n]))
			completes := func(header int) bool { return at < header && header <= at+n }
			require.Equal(t, completes(bodyAt) || completes(endAt), body, at)
			require.Equal(t, completes(endAt), end, at)
			at += n
		}
	})
}
