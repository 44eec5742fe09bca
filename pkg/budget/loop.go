package budget

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// recentKept is how many of a session's latest queries are remembered to find loops.
const recentKept = 200

// growth is by how much a query has to scan more than the one before it to count as grown: a table that somebody writes to
// meanwhile grows as well, and is no loop.
const growth = 1.05

// recent is an admitted query as the search for loops remembers it.
type recent struct {
	Text  Hash   `json:"text,omitempty"`
	Group Hash   `json:"group,omitempty"`
	Bytes *int64 `json:"bytes,omitempty"`
}

// Hash stands for a text; 0 for none. An account remembers hundreds of them, so they are small. In JSON it is hexadecimal.
type Hash uint64

// MarshalText writes sixteen hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(h)), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hash) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil {
		return fmt.Errorf("reading a hash: %w", err)
	}
	*h = Hash(n)
	return nil
}

// Digest makes the Text or Group of a Query of its parts. White space in them does not count.
func Digest(parts ...string) Hash {
	h := sha256.New()
	for _, p := range parts {
		for word := range strings.FieldsSeq(p) {
			h.Write([]byte(word))
			h.Write([]byte{' '})
		}
		h.Write([]byte{0})
	}
	return Hash(binary.BigEndian.Uint64(h.Sum(nil)))
}

// remember appends a query and forgets what is too long ago.
func remember(list []recent, q recent) []recent {
	list = append(list, q)
	if len(list) > recentKept {
		list = append([]recent(nil), list[len(list)-recentKept:]...)
	}
	return list
}

func repeats(list []recent, text Hash) (n int64) {
	if text == 0 {
		return 0
	}
	for _, r := range list {
		if r.Text == text {
			n++
		}
	}
	return n
}

// growing is the length of the run that a query of that many bytes ends. A query whose size is not known ends a run: it may be
// what broke the loop.
func growing(list []recent, group Hash, bytes *int64) int64 {
	if group == 0 || bytes == nil {
		return 0
	}
	n, after := int64(1), float64(*bytes)
	for _, r := range slices.Backward(list) {
		if r.Group != group {
			continue
		}
		if r.Bytes == nil || float64(*r.Bytes)*growth > after || *r.Bytes <= 0 {
			break
		}
		n, after = n+1, float64(*r.Bytes)
	}
	return n
}
