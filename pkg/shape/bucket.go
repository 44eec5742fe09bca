package shape

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

// Bucket sets apart parameters of one fingerprint: the same text with other values may cost thousands of times as much.
// Each part is a power of two, plus one; zero means that the statement has no such parameter.
type Bucket struct {
	// List is the length of the longest list, Range the width of the narrowest range in seconds or units, Limit the outer
	// limit. A limit of zero is a bucket of its own.
	List, Range, Limit uint8
}

// log2 puts a size into its bucket: 0 -> 1, 1 -> 2, 2..3 -> 3, 4..7 -> 4.
func log2(n uint64) uint8 { return uint8(bits.Len64(n)) + 1 }

// String prints the bucket in a form that is stable: l4-r17-n7. A statement without parameters has the bucket "-".
func (b Bucket) String() string { return string(b.Append(nil)) }

// Append appends what String prints.
func (b Bucket) Append(dst []byte) []byte {
	start := len(dst)
	for _, part := range [...]struct {
		letter byte
		n      uint8
	}{{'l', b.List}, {'r', b.Range}, {'n', b.Limit}} {
		if part.n == 0 {
			continue
		}
		if len(dst) > start {
			dst = append(dst, '-')
		}
		dst = strconv.AppendInt(append(dst, part.letter), int64(part.n)-1, 10)
	}
	if len(dst) == start {
		dst = append(dst, '-')
	}
	return dst
}

// bucket finds the parameters' bucket.
func (t *Template) bucket(b *Binding, sql string, r lex.Result) Bucket {
	var out Bucket
	if r.Lists > 0 {
		out.List = log2(uint64(r.LongestList))
	}
	if b.HasLimit {
		out.Limit = log2(uint64(b.Limit))
	}
	for i := range t.ranges {
		if n, ok := b.width(sql, &t.ranges[i]); ok {
			if w := log2(n); out.Range == 0 || w < out.Range {
				out.Range = w
			}
		}
	}
	return out
}

// rangesOf pairs the lower and the upper bound that a column has. Which table the column is of does not matter here.
func rangesOf(conds []Condition) []Range {
	var out []Range
	for i := range conds {
		low := &conds[i]
		if low.Op != Ge && low.Op != Gt {
			continue
		}
		for k := range conds {
			high := &conds[k]
			if (high.Op == Le || high.Op == Lt) && high.Column.Equal(low.Column) {
				out = append(out, Range{Low: SlotOf(low.Slots[0]), High: SlotOf(high.Slots[0])})
				break
			}
		}
	}
	return out
}

// width is the width of a range: seconds between times, units between numbers.
func (b *Binding) width(sql string, r *Range) (uint64, bool) {
	if r.Interval.kind == slotLit {
		s, ok := b.span(r.Interval.slot)
		if !ok {
			return 0, false
		}
		return intervalSeconds(strings.Trim(sql[s.Off:s.End], "'\" "), r.Unit)
	}
	low, ok1 := b.span(r.Low.slot)
	high, ok2 := b.span(r.High.slot)
	if !ok1 || !ok2 || low.Class != high.Class {
		return 0, false
	}
	lo, hi := sql[low.Off:low.End], sql[high.Off:high.End]
	if low.Class == lex.Number {
		x, okx := parseInt(lo)
		y, oky := parseInt(hi)
		if !okx || !oky || y < x {
			return 0, false
		}
		return uint64(y - x), true
	}
	x, okx := parseTime(strings.Trim(lo, "'\""))
	y, oky := parseTime(strings.Trim(hi, "'\""))
	if !okx || !oky || y < x {
		return 0, false
	}
	return uint64(y - x), true
}

// parseTime reads 2006-01-02 with an optional time of day, as seconds; a zone is ignored, since both ends have the same.
func parseTime(s string) (int64, bool) {
	if len(s) == 8 { // 20060102
		y, ok1 := digits(s[:4])
		m, ok2 := digits(s[4:6])
		d, ok3 := digits(s[6:])
		return unix(y, m, d, 0, 0, 0), ok1 && ok2 && ok3 && m >= 1 && m <= 12
	}
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, ok1 := digits(s[:4])
	m, ok2 := digits(s[5:7])
	d, ok3 := digits(s[8:10])
	if !ok1 || !ok2 || !ok3 || m < 1 || m > 12 {
		return 0, false
	}
	var hour, minute, second int
	if len(s) >= 13 {
		if hour, ok1 = digits(s[11:13]); !ok1 {
			return 0, false
		}
	}
	if len(s) >= 16 {
		if minute, ok1 = digits(s[14:16]); !ok1 {
			return 0, false
		}
	}
	if len(s) >= 19 {
		if second, ok1 = digits(s[17:19]); !ok1 {
			return 0, false
		}
	}
	return unix(y, m, d, hour, minute, second), true
}

func unix(y, m, d, hour, minute, second int) int64 {
	return time.Date(y, time.Month(m), d, hour, minute, second, 0, time.UTC).Unix()
}

func digits(s string) (int, bool) {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

var unitSeconds = map[string]uint64{
	"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "month": 30 * 86400, "quarter": 91 * 86400, "year": 365 * 86400,
}

// intervalSeconds is the length of an interval whose unit stands behind it or in it: '1' DAY, '1 day'.
func intervalSeconds(text, unit string) (uint64, bool) {
	number, inside, _ := strings.Cut(text, " ")
	if unit == "" {
		unit = inside
	}
	n, ok := parseInt(number)
	if !ok {
		return 0, false
	}
	length, ok := unitSeconds[unit]
	if !ok && len(unit) > 1 {
		length, ok = unitSeconds[unit[:len(unit)-1]] // plural
	}
	return uint64(n) * length, ok
}
