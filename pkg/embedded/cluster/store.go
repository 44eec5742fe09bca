package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"
)

// store holds the one object. Spec changes raise the generation, any change raises the resource version, and a change
// that changes nothing raises neither: as kube-apiserver has it.
type store struct {
	maxReplicas int32

	mu      sync.Mutex
	object  map[string]any
	version int64
	writes  int64
	changed chan struct{} // closed and replaced on every change
}

func newStore(opts Options) (*store, error) {
	groups := make([]any, 0, len(opts.Groups))
	for _, g := range opts.Groups {
		item := map[string]any{"uniqueId": g.UniqueID, "image": "pointsman/embedded-engine"}
		if g.Replicas != nil {
			item["replicas"] = json.Number(strconv.Itoa(int(*g.Replicas)))
		}
		groups = append(groups, item)
	}
	s := &store{maxReplicas: opts.MaxReplicas, version: 1, changed: make(chan struct{})}
	s.object = map[string]any{
		"apiVersion": APIVersion,
		"kind":       Kind,
		"metadata": map[string]any{
			"name":              opts.Name,
			"namespace":         opts.Namespace,
			"uid":               "00000000-0000-4000-8000-000000000001",
			"generation":        json.Number("1"),
			"resourceVersion":   "1",
			"creationTimestamp": time.Now().UTC().Format(time.RFC3339),
		},
		"spec": map[string]any{
			"metaService":   map[string]any{"image": "pointsman/embedded-meta"},
			"feSpec":        map[string]any{"image": "pointsman/embedded-frontend", "replicas": json.Number("1")},
			"computeGroups": groups,
		},
	}
	if err := validate(s.object, s.maxReplicas); err != nil {
		return nil, err
	}
	return s, nil
}

// get returns the object as JSON.
func (s *store) get() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(s.object)
}

func (s *store) writeCount() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// watch returns the replicas that a group is to have, the generation that says so, and a channel that is closed at the
// next change of the object.
func (s *store) watch(group string) (replicas int32, generation int64, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	metadata := s.object["metadata"].(map[string]any)
	generation, _ = metadata["generation"].(json.Number).Int64()
	for _, item := range computeGroups(s.object) {
		if item["uniqueId"] == group {
			return specReplicas(item), generation, s.changed
		}
	}
	return 0, generation, s.changed // a group that is not declared is dropped, as the operator does
}

// patch applies a JSON Patch. With statusOnly only the status changes, without it only metadata and spec do.
func (s *store) patch(body []byte, statusOnly bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := applyPatch(s.object, body)
	if err != nil {
		return nil, err
	}
	if err := s.admit(next, statusOnly); err != nil {
		return nil, err
	}
	specChanged := !equalJSON(s.object["spec"], next["spec"])
	if specChanged || !equalJSON(s.object["metadata"], next["metadata"]) || !equalJSON(s.object["status"], next["status"]) {
		s.commit(next, specChanged)
		if specChanged {
			s.writes++
		}
	}
	return json.Marshal(s.object)
}

// admit turns a patched object into one that may be stored: what a client may not touch is put back as it was.
func (s *store) admit(next map[string]any, statusOnly bool) error {
	old := s.object["metadata"].(map[string]any)
	meta, ok := next["metadata"].(map[string]any)
	if !ok {
		return invalid("metadata: must be an object")
	}
	if meta["resourceVersion"] != old["resourceVersion"] {
		return &apiError{code: 409, reason: "Conflict", message: "Operation cannot be fulfilled on " + plural + ": the object " +
			"has been modified; please apply your changes to the latest version and try again"}
	}
	if meta["name"] != old["name"] || meta["namespace"] != old["namespace"] {
		return &apiError{code: 400, reason: "BadRequest", message: "the name or namespace of the object does not match the request"}
	}
	for _, key := range []string{"uid", "generation", "creationTimestamp"} {
		meta[key] = old[key]
	}
	if next["apiVersion"] != APIVersion || next["kind"] != Kind {
		return &apiError{code: 400, reason: "BadRequest", message: "apiVersion and kind must stay " + APIVersion + " " + Kind}
	}
	if statusOnly {
		next["spec"], next["metadata"] = s.object["spec"], s.object["metadata"]
	} else if status, ok := s.object["status"]; ok {
		next["status"] = status
	} else {
		delete(next, "status")
	}
	prune(next)
	return validate(next, s.maxReplicas)
}

// setStatus replaces the status by what the operator found, computed under the lock from the object as it is then.
func (s *store) setStatus(update func(object map[string]any) map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := update(s.object)
	if equalJSON(s.object["status"], status) {
		return
	}
	next := map[string]any{}
	maps.Copy(next, s.object)
	next["status"] = status
	s.commit(next, false)
}

func (s *store) commit(next map[string]any, specChanged bool) {
	s.version++
	meta := map[string]any{}
	maps.Copy(meta, next["metadata"].(map[string]any))
	meta["resourceVersion"] = strconv.FormatInt(s.version, 10)
	if specChanged {
		generation, _ := meta["generation"].(json.Number).Int64()
		meta["generation"] = json.Number(strconv.FormatInt(generation+1, 10))
	}
	next["metadata"] = meta
	s.object = next
	close(s.changed)
	s.changed = make(chan struct{})
}

// computeGroups are the declared groups of an object that has been validated.
func computeGroups(object map[string]any) []map[string]any {
	spec, _ := object["spec"].(map[string]any)
	list, _ := spec["computeGroups"].([]any)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if g, ok := item.(map[string]any); ok {
			out = append(out, g)
		}
	}
	return out
}

// specReplicas is what the operator makes of a group's replicas: absent is 1, and a negative number runs nothing.
func specReplicas(group map[string]any) int32 {
	number, ok := group["replicas"].(json.Number)
	if !ok {
		return 1
	}
	n, err := strconv.ParseInt(number.String(), 10, 32)
	if err != nil {
		return 1
	}
	return int32(n)
}

// equalJSON compares by the encoded form: maps are written in key order, so equal values have equal bytes.
func equalJSON(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

func decodeObject(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	return object, nil
}
