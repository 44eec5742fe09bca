package policy

import "fmt"

// Exploration is how much of the traffic goes where the ranking would not send it, so that something is learned of places that
// would never be tried. The zero Exploration explores nothing.
type Exploration struct {
	// Share is the probability that a Task which may explore goes to one of the other candidates, each as likely.
	Share float64
	// NewShare is the probability, on top of Share, that it goes to one where its fingerprint has fewer than NewBelowRuns runs.
	NewShare     float64
	NewBelowRuns int64
	// MaxExtraShare bounds the time that a tenant pays for exploration, as a share of the execution time it has used: it is
	// what lets a candidate that is slower than the best be tried.
	MaxExtraShare float64
}

// On reports whether anything is explored.
func (e *Exploration) On() bool { return e.Share > 0 || e.NewShare > 0 }

// mostExplored keeps exploration the exception: the ranking's choice must stay the likeliest.
const mostExplored = 0.5

var explorationOptions = []option[Exploration]{
	numberOption("share", "The probability that a request which may explore goes to one of the other candidates.", 0, mostExplored,
		func(e *Exploration) *float64 { return &e.Share }).withDefault("0"),
	numberOption("new_share", "The probability, on top of `share`, that it goes to one where its fingerprint has few runs.", 0, mostExplored,
		func(e *Exploration) *float64 { return &e.NewShare }).withDefault("0"),
	countOption("new_below_runs", "How many runs are few.", 1, 1e6, func(e *Exploration) *int64 { return &e.NewBelowRuns }).withDefault("20"),
	numberOption("max_extra_share", "The most extra time that a tenant pays for exploration, as a share of the time its queries run.", 0, 1,
		func(e *Exploration) *float64 { return &e.MaxExtraShare }).withDefault("0.02"),
}

func (r *reader) exploration(section field) Exploration {
	e := Exploration{NewBelowRuns: 20, MaxExtraShare: 0.02}
	readOptions(r, section, "the exploration", explorationOptions, &e)
	if sum := e.Share + e.NewShare; sum > mostExplored {
		r.fault(section.keyNode, section.path, fmt.Sprintf("share and new_share add up to %g; above %g it is no exception any more", sum, mostExplored))
	}
	return e
}
