// Package fingerprint gives every SQL text an identity that does not depend on its literals, layout, comments or the
// length of its lists.
//
// The cutting into tokens is package lex's; what a statement reads and writes is package shape's; remembering results is
// package cache's.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// Version is the version of the normalisation rules. Any change of canonical text gets a new one.
const Version = "pm1"

// ID is the persistent identity of a canonical text: it may be stored and compared across processes and releases.
type ID [16]byte

// Dialect names the lexical rules of a text; see the constants of package lex.
type Dialect = lex.Dialect

// ParseDialect reads a dialect's name.
func ParseDialect(name string) (Dialect, error) { return lex.ParseDialect(name) }

// Result is a fingerprint with what one pass found on its way.
type Result struct {
	// ID is the persistent identity.
	ID ID
	// Canonical is the text that the identity stands for. It holds no literal.
	Canonical string
	lex.Result
}

// New fingerprints a text. It never fails; broken text ends in a literal that reaches to its end.
func New(sql string, d Dialect) Result {
	canonical, r := lex.Canonical(nil, sql, d)
	text := string(canonical)
	return Result{ID: IDOf(text, d), Canonical: text, Result: r}
}

// Of is the persistent identity of a text.
func Of(sql string, d Dialect) ID { return New(sql, d).ID }

// Canonical is the normalised text.
func Canonical(sql string, d Dialect) string {
	out, _ := lex.Canonical(nil, sql, d)
	return string(out)
}

// AppendCanonical appends the normalised text to dst.
func AppendCanonical(dst []byte, sql string, d Dialect) []byte {
	dst, _ = lex.Canonical(dst, sql, d)
	return dst
}

// IDOf is the identity of a text that is canonical already. Text that is empty or only comment has one identity in all
// dialects.
func IDOf(canonical string, d Dialect) ID {
	family := d.Family()
	if canonical == "" {
		family = "any"
	}
	h := sha256.New()
	h.Write([]byte(Version + "\n" + family + "\n" + canonical))
	var sum [sha256.Size]byte
	return ID(h.Sum(sum[:0])[:16])
}

// String prints the identity as pm1- and 32 hexadecimal digits.
func (id ID) String() string { return Version + "-" + hex.EncodeToString(id[:]) }

// MarshalText prints the identity.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// ParseID reads an identity of this version of the rules.
func ParseID(text string) (ID, error) {
	digits, ok := strings.CutPrefix(text, Version+"-")
	var id ID
	if !ok || len(digits) != 2*len(id) {
		return ID{}, fmt.Errorf("fingerprint %q: want %s- and %d hexadecimal digits", text, Version, 2*len(id))
	}
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, fmt.Errorf("fingerprint %q: %w", text, err)
	}
	return id, nil
}

// HintHash prints the hash of a text's optimizer hints, or nothing if it has none.
func (r Result) HintHash() string {
	if r.Hint == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", r.Hint)
}
