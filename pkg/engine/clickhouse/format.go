package clickhouse

import (
	"fmt"
	"strconv"
	"time"
)

// shortest widens a Float32 to the Float64 that prints the same.
func shortest(f float32) float64 {
	wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil { // not a number, or infinite
		return float64(f)
	}
	return wide
}

// clock writes a Time or Time64 value as ClickHouse does, [-]hhh:mm:ss[.fraction].
func clock(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	whole := d.Truncate(time.Second)
	s := fmt.Sprintf("%s%02d:%02d:%02d", sign, int(whole.Hours()), int(whole.Minutes())%60, int(whole.Seconds())%60)
	if rest := d - whole; rest > 0 {
		s += trimZeros(fmt.Sprintf(".%09d", rest.Nanoseconds()))
	}
	return s
}

func trimZeros(s string) string {
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	return s
}
