package signal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
func (s Seen) MarshalJSON() ([]byte, error) { return jsonv2.Marshal(s) }

// MarshalJSONTo is MarshalJSON for what a decision saw.
func (s Seen) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for i := range s {
		if err := s[i].writeTo(enc); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

func (s *Sighting) writeTo(enc *jsontext.Encoder) error {
	if err := errors.Join(enc.WriteToken(jsontext.String(s.Cluster)), enc.WriteToken(jsontext.BeginObject)); err != nil {
		return err
	}
	for i := range s.Facts {
		f := &s.Facts[i]
		if err := errors.Join(enc.WriteToken(jsontext.String(string(f.Name))), f.Value.MarshalJSONTo(enc)); err != nil {
			return fmt.Errorf("writing %s of %s: %w", f.Name, s.Cluster, err)
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// UnmarshalJSONFrom is UnmarshalJSON for what a decision saw.
func (s *Seen) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var snapshot Snapshot
	if err := jsonv2.UnmarshalDecode(dec, &snapshot); err != nil {
		return err
	}
	s.take(snapshot)
	return nil
}

// UnmarshalJSON reads what MarshalJSON writes, in the order of the names.
func (s *Seen) UnmarshalJSON(data []byte) error {
	var snapshot Snapshot
	if err := json.Unmarshal(data, &snapshot); err != nil {
		return err
	}
	s.take(snapshot)
	return nil
}

func (s *Seen) take(snapshot Snapshot) {
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
}
