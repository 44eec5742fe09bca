package topicadmin

import (
	"fmt"
	"strings"
)

// Kind says what a difference between the description and the cluster is.
type Kind string

// The kinds of differences.
const (
	Missing   Kind = "missing"   // the topic is not there: Apply creates it
	Setting   Kind = "setting"   // a setting differs: Apply changes it
	Conflict  Kind = "conflict"  // nothing that Apply may change: a person has to
	Unmanaged Kind = "unmanaged" // a setting that the description says nothing about: Apply leaves it
)

// Difference is one thing that is not as described. Topics carry the prefix.
type Difference struct {
	Topic string
	Kind  Kind
	Key   string // of a setting; "partitions"
	Have  string
	Want  string
}

// String renders the difference for people.
func (d Difference) String() string {
	switch d.Kind {
	case Missing:
		return fmt.Sprintf("+ %s: create with %s", d.Topic, d.Want)
	case Setting:
		return fmt.Sprintf("~ %s: %s is %s, will be %s", d.Topic, d.Key, d.Have, d.Want)
	case Conflict:
		return fmt.Sprintf("! %s: %s is %s, should be %s; this can't be changed without moving keys: make the topic anew under another prefix", d.Topic, d.Key, d.Have, d.Want)
	default:
		return fmt.Sprintf("  %s: %s is set to %s by somebody else, and stays", d.Topic, d.Key, d.Have)
	}
}

// Plan is everything that is not as described, in order of topic and kind.
type Plan []Difference

// Clean says that there is nothing to do, and nothing that a person has to do.
func (p Plan) Clean() bool { return p.count(Missing, Setting, Conflict) == 0 }

// Conflicts returns what Apply refuses to touch.
func (p Plan) Conflicts() Plan {
	var out Plan
	for _, d := range p {
		if d.Kind == Conflict {
			out = append(out, d)
		}
	}
	return out
}

// String renders the plan, a line per difference.
func (p Plan) String() string {
	if len(p) == 0 {
		return "topics are as described\n"
	}
	var b strings.Builder
	for _, d := range p {
		b.WriteString(d.String())
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d to create, %d settings to change, %d conflicts\n", p.count(Missing), p.count(Setting), p.count(Conflict))
	return b.String()
}

func (p Plan) count(kinds ...Kind) (n int) {
	for _, d := range p {
		for _, k := range kinds {
			if d.Kind == k {
				n++
			}
		}
	}
	return n
}
