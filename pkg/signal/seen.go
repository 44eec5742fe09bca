package signal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Fact is a named Value.
type Fact struct {
	Name  Name
	Value Value
}

// Sighting is what was known of one cluster.
type Sighting struct {
	Cluster string
	Facts   []Fact
}

// Seen is what a decision saw of the clusters. It says what a Snapshot says, and reads and writes the same JSON, but is made
// once and looked through, so that it is lists.
type Seen []Sighting

// Get returns a fact of a cluster.
func (s Seen) Get(cluster string, name Name) (Value, bool) {
	for i := range s {
		if s[i].Cluster != cluster {
			continue
		}
		for j := range s[i].Facts {
			if s[i].Facts[j].Name == name {
				return s[i].Facts[j].Value, true
			}
		}
	}
	return Value{}, false
}

// Of returns what was seen of a cluster.
func (s Seen) Of(cluster string) []Fact {
	for i := range s {
		if s[i].Cluster == cluster {
			return s[i].Facts
		}
	}
	return nil
}

// MarshalJSON writes an object of clusters, each an object of facts.
func (s Seen) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 64+512*len(s))
	b = append(b, '{')
	for i := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, s[i].Cluster), ':', '{')
		for j := range s[i].Facts {
			if j > 0 {
				b = append(b, ',')
			}
			f := &s[i].Facts[j]
			b = append(appendText(b, string(f.Name)), ':')
			var err error
			if b, err = f.Value.AppendJSON(b); err != nil {
				return nil, fmt.Errorf("writing %s of %s: %w", f.Name, s[i].Cluster, err)
			}
		}
		b = append(b, '}')
	}
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes, in the order of the names.
func (s *Seen) UnmarshalJSON(data []byte) error {
	var snapshot Snapshot
	if err := json.Unmarshal(data, &snapshot); err != nil {
		return err
	}
	*s = make(Seen, 0, len(snapshot))
	for cluster, values := range snapshot {
		facts := make([]Fact, 0, len(values))
		for name, v := range values {
			facts = append(facts, Fact{Name: name, Value: v})
		}
		slices.SortFunc(facts, func(a, b Fact) int { return cmp.Compare(a.Name, b.Name) })
		*s = append(*s, Sighting{Cluster: cluster, Facts: facts})
	}
	slices.SortFunc(*s, func(a, b Sighting) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return nil
}
