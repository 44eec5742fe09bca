package spark

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Intervals are no instants and no numbers: they are written as Spark's cast to a string does.

func yearMonthText(months int64, start, end *int32) string {
	first, last := span(start, end, yearMonth)
	sign, n := signOf(months)
	var text string
	switch {
	case first == 0 && last == 0:
		text = fmt.Sprint(n / 12)
	case first == 1:
		text = fmt.Sprint(n)
	default:
		text = fmt.Sprintf("%d-%d", n/12, n%12)
	}
	return "INTERVAL '" + sign + text + "' " + strings.ToUpper(spanName(start, end, yearMonth))
}

func signOf(n int64) (string, uint64) {
	if n < 0 {
		return "-", -uint64(n) // also of the smallest one
	}
	return "", uint64(n)
}

// micros are how many microseconds the fields of an interval have.
var micros = []uint64{86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000}

func dayTimeText(total int64, start, end *int32) string {
	first, last := span(start, end, dayTime)
	sign, n := signOf(total)
	var b strings.Builder
	for f := first; f <= last; f++ {
		switch {
		case f == first+1 && first == 0:
			b.WriteString(" ")
		case f > first:
			b.WriteString(":")
		}
		part := n / micros[f]
		n -= part * micros[f]
		if f == first && f < 3 {
			fmt.Fprintf(&b, "%d", part)
		} else {
			fmt.Fprintf(&b, "%02d", part)
		}
	}
	if last == 3 && n > 0 {
		b.WriteString(strings.TrimRight(fmt.Sprintf(".%06d", n), "0"))
	}
	return "INTERVAL '" + sign + b.String() + "' " + strings.ToUpper(spanName(start, end, dayTime))
}

// calendarText is an interval of months, days and a time, none of which is so many of the others.
func calendarText(v arrow.MonthDayNanoInterval) string {
	var parts []string
	add := func(n int64, unit string) {
		if n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit))
		}
	}
	add(int64(v.Months/12), "years")
	add(int64(v.Months%12), "months")
	add(int64(v.Days), "days")
	us := v.Nanoseconds / 1000
	add(us/3_600_000_000, "hours")
	add(us/60_000_000%60, "minutes")
	if rest := us % 60_000_000; rest != 0 {
		sign, n := signOf(rest)
		text := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%s%d.%06d", sign, n/1_000_000, n%1_000_000), "0"), ".")
		parts = append(parts, text+" seconds")
	}
	if len(parts) == 0 {
		return "0 seconds"
	}
	return strings.Join(parts, " ")
}
