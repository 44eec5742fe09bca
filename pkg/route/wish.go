package route

import (
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
)

// wish is one of the Task's hints.
type wish struct {
	word string
	// resource says that it asks for a resource profile; else it asks for a cluster, or any of an engine.
	resource bool
}

// wishes are what the request asks for, in no more than two words: an engine, and resources.
func wishes(t *query.Task) []wish {
	var out []wish
	if t.EngineHint != "" {
		out = append(out, wish{word: t.EngineHint})
	}
	if t.ResourceHint != "" {
		out = append(out, wish{word: t.ResourceHint, resource: true})
	}
	return out
}

// wishText is what the request asks for, in words.
func wishText(t *query.Task) string {
	if t.EngineHint != "" && t.ResourceHint != "" {
		return t.EngineHint + " and " + t.ResourceHint
	}
	return t.EngineHint + t.ResourceHint
}

func (w wish) met(t *event.Target) bool {
	if w.resource {
		return strings.EqualFold(t.Resource, w.word)
	}
	return strings.EqualFold(t.Cluster, w.word) || strings.EqualFold(t.Engine, w.word)
}

// unheard says why a wish was not followed: nothing is what it asks for, or all that is was removed, or something came before it.
func (s *scene) unheard(w wish, best, chosen *candidate) string {
	why := "the policy has no such engine"
	if w.resource {
		why = "the policy has no such resources"
	}
	for i := range s.cands {
		c := &s.cands[i]
		switch {
		case !w.met(&c.Target):
			continue
		case c.Filtered != nil:
			why = c.name() + ": " + c.Filtered.Text
			continue
		case chosen != best:
			return "it goes where the lot has fallen"
		}
		switch Code(c.loss.Code) {
		case SLAProbability:
			return c.name() + " meets the SLA less well"
		case ShorterCompletion:
			return c.name() + " is expected to take longer, and nothing meets the SLA"
		default:
			return "no place that can take it is all that it asks for"
		}
	}
	return why
}
