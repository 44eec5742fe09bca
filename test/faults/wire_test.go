package faults_test

import (
	"maps"
	"regexp"
	"strings"
	"sync"
)

// statement is a submission on the wire.
type statement struct {
	task    string
	attempt string // "" if the connection had named none of this task
	fetch   bool   // no submission, but the request for the rows of the connection's last one
}

// requests finds submissions in what a client sends on one connection.
type requests interface{ read(p []byte) []statement }

// texts finds submissions in what a client sends: the attempt's id comes before its statement on the same connection, which has a
// mark in it.
type texts struct {
	carry   string
	attempt string
}

var known = regexp.MustCompile(`(f\d{6})(?:/|%2F)(\d+)|mark_(f\d{6})_`)

func (x *texts) read(p []byte) (out []statement) {
	text := x.carry + string(p)
	end := 0
	for _, m := range known.FindAllStringSubmatchIndex(text, -1) {
		end = m[1]
		if m[2] >= 0 {
			x.attempt = text[m[2]:m[3]] + "/" + text[m[4]:m[5]]
			continue
		}
		s := statement{task: text[m[6]:m[7]]}
		if strings.HasPrefix(x.attempt, s.task+"/") {
			s.attempt = x.attempt
		}
		out = append(out, s)
	}
	x.carry = text[max(end, len(text)-24):]
	return out
}

// wire counts submissions of all processes.
type wire struct {
	mu   sync.Mutex
	seen map[string]map[string]int // task, attempt
}

func (w *wire) count(s statement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[s.task] == nil {
		w.seen[s.task] = map[string]int{}
	}
	w.seen[s.task][s.attempt]++
}

// take gives the counts of a task.
func (w *wire) of(task string) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	maps.Copy(out, w.seen[task])
	return out
}
