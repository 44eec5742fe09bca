package policy

import (
	"slices"
	"strings"
)

// suggest ends a message about an unknown name: with the known one it is a slip of, or with all that are known when there are
// few of them.
func suggest(name string, known []string) string {
	if s := slip(name, known); s != "" {
		return s
	}
	if len(known) == 0 || len(known) > 12 {
		return ""
	}
	sorted := slices.Clone(known)
	slices.Sort(sorted)
	return "; known are " + strings.Join(sorted, ", ")
}

// slip ends a message about an unknown name with the known one it is a slip of, if there is one.
func slip(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k), least); d < least && d < len(name) {
			best, least = k, d
		}
	}
	// What is spelt right and too short, or too long, is a slip as well.
	for _, k := range known {
		if best == "" && len(name) > 3 && (strings.HasPrefix(k, name) || strings.HasPrefix(name, k)) {
			best = k
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the number of letters to add, drop, change or swap with a neighbour, most at most.
func distance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most)
}
