package wire

import (
	"encoding/hex"
	"strings"

	"github.com/zeebo/xxh3"
)

// MaxName is the longest name that Name gives: PostgreSQL cuts an application name at 63 bytes.
const MaxName = 63

// Name is an attempt id in a form that engines carry unchanged, in a comment or as the name of a session. Most ids are short
// and plain and stay as they are. Any other one keeps a readable part and gets a digest of the whole, so that two ids never
// have one name and every process finds the same one.
func Name(id string) string {
	plain := id != "" && len(id) <= MaxName
	for i := 0; i < len(id) && plain; i++ {
		plain = plainByte(id[i])
	}
	if plain {
		return id
	}
	sum := digest(id)
	var b strings.Builder
	for i := 0; i < len(id) && b.Len() < MaxName-len(sum)-1; i++ {
		if plainByte(id[i]) {
			b.WriteByte(id[i])
		} else {
			b.WriteByte('_')
		}
	}
	return b.String() + "~" + sum // a plain name has no such sign
}

// LockName names an attempt's lock for engines that compare names without regard to case.
func LockName(id string) string { return "pointsman:" + digest(id) }

// LockKey is the same for engines whose locks have numbers.
func LockKey(id string) int64 { return int64(xxh3.HashString("pointsman:" + id)) }

func digest(id string) string {
	sum := xxh3.HashString128(id).Bytes()
	return hex.EncodeToString(sum[:])
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == ':' || c == '/'
}
