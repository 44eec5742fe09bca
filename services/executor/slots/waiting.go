package slots

import (
	"cmp"
	"slices"
)

// want is all that the answer to an ask depends on: of those that want the same only the first has to be looked at.
type want struct{ cluster, queue, tenant string }

// queueSet holds those that wait, in order, by what they want. No queue is empty.
type queueSet map[want][]*entry

func (e *entry) want() want { return want{e.Cluster, e.Queue, e.Tenant} }

func (s queueSet) add(e *entry) {
	q := s[e.want()]
	i, _ := slices.BinarySearchFunc(q, e, compare)
	s[e.want()] = slices.Insert(q, i, e)
}

func (s queueSet) remove(e *entry) {
	q := s[e.want()]
	i, found := slices.BinarySearchFunc(q, e, compare)
	switch {
	case !found:
	case len(q) == 1:
		delete(s, e.want())
	default:
		s[e.want()] = slices.Delete(q, i, i+1)
	}
}

// compare is the order of those that wait. It is total, since attempts have one entry each.
func compare(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since), cmp.Compare(a.AttemptID, b.AttemptID))
}
