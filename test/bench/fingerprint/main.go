// Command fingerprint measures pointsman's fingerprint beside those of other projects, all in one run on one corpus.
//
// Absolute times wander on shared machines, so that every peer alternates with pointsman and the ratios are what counts.
// It is a module of its own: the peers stay out of the product's dependencies.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
)

type statement struct {
	Group, Dialect, SQL string
	d                   lex.Dialect
}

func main() {
	log.SetFlags(0)
	corpus := flag.String("corpus", "../../corpus/fingerprint/traffic.jsonl", "the statements, one JSON object a line")
	pairs := flag.Int("pairs", 31, "windows for each side of a pair")
	window := flag.Duration("window", 20*time.Millisecond, "length of one window")
	flag.Parse()
	all, err := read(*corpus)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%-26s %-9s %8s %9s %9s %9s %9s %8s %8s %10s\n", "peer", "texts", "accepts", "ns/stmt", "MB/s", "ours ns", "ours MB/s", "ratio", "median", "allocs/op")
	for _, group := range []string{"no-list", "point", "all", "foreign"} {
		texts := pick(all, group)
		for _, p := range peers() {
			compare(p, group, texts, *pairs, *window)
		}
	}
}

func read(path string) ([]statement, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the corpus: %w", err)
	}
	defer f.Close()
	var out []statement
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s statement
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("reading the corpus: %w", err)
		}
		if s.d, err = lex.ParseDialect(s.Dialect); err != nil {
			return nil, fmt.Errorf("reading the corpus: %w", err)
		}
		out = append(out, s)
	}
	return out, lines.Err()
}

// pick selects the texts of a group: everything, everything without long lists, short statements, or what other dialects,
// comments and scripts make hard.
func pick(all []statement, name string) []statement {
	var out []statement
	for _, s := range all {
		list := s.Group == "in" || s.Group == "insert"
		foreign := s.Group == "dialect" || s.Group == "comment" || s.Group == "chinese"
		if name == "all" || name == "no-list" && !list || name == "foreign" && foreign || s.Group == name {
			out = append(out, s)
		}
	}
	return out
}

// peer is one way to normalise a statement. It says whether it accepted it.
type peer struct {
	name string
	run  func(s *statement) bool
}

// compare alternates windows of the peer and of pointsman over the texts that the peer accepts. The ratio is that of the
// lowest times, which other work on the machine disturbs least; the median is that of the pairs.
func compare(p peer, group string, texts []statement, pairs int, window time.Duration) {
	texts = accepted(p, texts)
	if len(texts) == 0 {
		return
	}
	ours := peer{"pointsman", func(s *statement) bool { return lex.Run(s.SQL, s.d, lex.Key{}, nil).Tokens > 0 }}
	var theirTimes, ourTimes, ratios []float64
	for range pairs {
		a := timed(p, texts, window)
		b := timed(ours, texts, window)
		theirTimes, ourTimes, ratios = append(theirTimes, a), append(ourTimes, b), append(ratios, a/b)
	}
	bytes := 0
	for i := range texts {
		bytes += len(texts[i].SQL)
	}
	perStatement := float64(bytes) / float64(len(texts))
	a, b := slices.Min(theirTimes), slices.Min(ourTimes)
	fmt.Printf("%-26s %-9s %8d %9.0f %9.1f %9.0f %9.1f %8.2f %8.2f %10.1f\n", p.name, group, len(texts), a, perStatement/a*1e3, b, perStatement/b*1e3, a/b, median(ratios), allocs(p, texts))
}

func accepted(p peer, texts []statement) []statement {
	var out []statement
	for i := range texts {
		if try(p, &texts[i]) {
			out = append(out, texts[i])
		}
	}
	return out
}

// try counts a panic as a refusal.
func try(p peer, s *statement) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return p.run(s)
}

// timed is the nanoseconds a statement over one window.
func timed(p peer, texts []statement, window time.Duration) float64 {
	start := time.Now()
	rounds := 0
	for time.Since(start) < window {
		for i := range texts {
			p.run(&texts[i])
		}
		rounds++
	}
	return float64(time.Since(start).Nanoseconds()) / float64(rounds) / float64(len(texts))
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}
