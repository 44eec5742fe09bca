package shape

import "slices"

// Assigns notes the tables that the assignments of an UPDATE write: those that the qualifiers of its columns mean, else the
// first one.
func (b *Builder) Assigns(n *Query, qualifiers [][]string) {
	found := false
	items := indexItems(n.Items)
	for _, qual := range qualifiers {
		for _, s := range items[qual[len(qual)-1]] {
			if s.Means(qual) {
				b.Writes(s.Table)
				found = true
			}
		}
	}
	if !found && len(n.Items) > 0 && n.Items[0].Parts != nil {
		b.Writes(n.Items[0].Table)
	}
}

// aliased is for UPDATE a SET .. FROM t a, where what is named first is an item of FROM and no table of its own.
func (b *Builder) aliased(n *Query) {
	first := n.Items[0]
	if first.Alias != "" || len(first.Parts) != 1 {
		return
	}
	for _, it := range n.Items[1:] {
		if it.Alias == first.Parts[0] && it.Parts != nil {
			b.unread(first.Table)
			n.Items[0] = &Item{Alias: "\x00", Fixed: true, Closed: true} // the others keep their places
			b.Writes(it.Table)
			return
		}
	}
}

// unread takes back a reference to a table.
func (b *Builder) unread(t Table) {
	if b.uses[t]--; b.uses[t] > 0 || b.written[t] {
		return
	}
	delete(b.uses, t)
	b.Shape.Tables = slices.DeleteFunc(b.Shape.Tables, func(x Table) bool { return x == t })
}

// Deletes notes the tables that a DELETE names as those it deletes from, by their aliases or their own names.
func (b *Builder) Deletes(n *Query, names [][]string) {
	items := indexItems(n.Items)
	for _, name := range names {
		found := false
		for _, s := range items[name[len(name)-1]] {
			if s.Means(name) || s.Alias != "" && TableOf(name) == s.Table {
				b.Writes(s.Table)
				found = true
			}
		}
		if !found {
			b.Writes(TableOf(name))
		}
	}
}

// itemIndex finds items by the last word of what they may be called.
type itemIndex map[string][]*Item

// indexItems finds tables by their aliases and their own names.
func indexItems(items []*Item) itemIndex {
	x := make(itemIndex, len(items))
	for _, s := range items {
		if s.Parts == nil {
			continue
		}
		last := s.Parts[len(s.Parts)-1]
		x[last] = append(x[last], s)
		if s.Alias != "" && s.Alias != last {
			x[s.Alias] = append(x[s.Alias], s)
		}
	}
	return x
}

// indexNames finds items, derived tables too, by what a qualifier must say to mean them.
func indexNames(items []*Item) itemIndex {
	x := make(itemIndex, len(items))
	for _, s := range items {
		switch {
		case s.Alias != "":
			x[s.Alias] = append(x[s.Alias], s)
		case len(s.Parts) > 0:
			last := s.Parts[len(s.Parts)-1]
			x[last] = append(x[last], s)
		}
	}
	return x
}
