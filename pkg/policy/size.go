package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const gigabyte = 1000 * 1000 * 1000

var sizeUnits = map[string]float64{
	"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "pb": 1e15,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50,
}

// sizePattern is what ParseSize reads, for the JSON Schema.
const sizePattern = `^ *[0-9]+(\.[0-9]+)? *([kKmMgGtTpP]?[bB]|[kKmMgGtTpP][iI][bB])? *$`

// ParseSize reads `50 GB`, `1.5TiB` or a plain number of bytes. GB is 10^9, GiB 2^30.
func ParseSize(s string) (int64, error) {
	s = strings.TrimSpace(s)
	i := strings.LastIndexAny(s, "0123456789.") + 1
	digits := strings.TrimSpace(s[:i])
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.Trim(digits, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is no size: write it like `50 GB` or `512 MiB`", s)
	}
	unit := strings.ToLower(strings.TrimSpace(s[i:]))
	if unit == "" {
		unit = "b"
	}
	factor, ok := sizeUnits[unit]
	if !ok {
		return 0, fmt.Errorf("%q has no unit that is known (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB)", s)
	}
	if number < 0 || number*factor >= 1<<63 {
		return 0, fmt.Errorf("%q is outside the range of sizes", s)
	}
	return int64(math.Round(number * factor)), nil
}

// formatSize writes a number of bytes as a policy would where that is short, and else roughly and exactly.
func formatSize(n float64) string {
	for i, u := range sizeWords {
		if math.Abs(n) < u.factor {
			continue
		}
		if math.Round(n*100/u.factor) == n*100/u.factor || i == len(sizeWords)-1 {
			return formatNumber(n/u.factor) + " " + u.name
		}
		return fmt.Sprintf("%.3g %s (%s B)", n/u.factor, u.name, formatNumber(n))
	}
	return formatNumber(n) + " B"
}

var sizeWords = []struct {
	name   string
	factor float64
}{{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

func formatNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
