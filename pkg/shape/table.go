package shape

import "strings"

// Table names a physical table. Names are folded as the dialect folds them; quotes are gone.
type Table struct {
	Catalog string `json:"catalog,omitempty"`
	Schema  string `json:"schema,omitempty"`
	Name    string `json:"name"`
}

// String joins the parts by dots.
func (t Table) String() string {
	switch {
	case t.Catalog != "":
		return t.Catalog + "." + t.Schema + "." + t.Name
	case t.Schema != "":
		return t.Schema + "." + t.Name
	}
	return t.Name
}

// TableOf builds a table of the parts of its name. What lies between catalog and table is the schema.
func TableOf(parts []string) Table {
	n := len(parts)
	switch n {
	case 0:
		return Table{}
	case 1:
		return Table{Name: parts[0]}
	case 2:
		return Table{Schema: parts[0], Name: parts[1]}
	}
	return Table{Catalog: parts[0], Schema: strings.Join(parts[1:n-1], "."), Name: parts[n-1]}
}

// Names are the tables' names, joined by dots.
func Names(tables []Table) []string {
	out := make([]string, 0, len(tables))
	for _, t := range tables {
		out = append(out, t.String())
	}
	return out
}
