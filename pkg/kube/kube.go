// Package kube reads one custom resource of the Doris operator and writes one field of it: the replicas of a compute
// group.
//
// It is the whole of what pointsman may do to a cluster. There is no scale subresource, and a merge patch would wipe the
// other groups, so the write is a JSON Patch that first tests what it relies on. After any refusal the object is read
// again and decides, never the status code: a failed test and a denied policy are both 422 there.
//
// Which size is right is pkg/capacity's business, whether the pool can serve is pkg/probe's.
package kube

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The resource.
const (
	apiPath = "/apis/disaggregated.cluster.doris.com/v1"
	plural  = "dorisdisaggregatedclusters"
)

// ErrNoGroup means that the object declares no compute group of that id.
var ErrNoGroup = errors.New("the custom resource has no such compute group")

// ErrContended means that others kept changing the object for as long as the write was tried.
var ErrContended = errors.New("the custom resource keeps changing")

// StatusError is a refusal of the API server.
type StatusError struct {
	Code    int
	Reason  string
	Message string
}

// Error gives code and message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the API server answered %d %s: %s", e.Code, e.Reason, e.Message)
}

// Group is one compute group: what is declared of it, and what the operator says of it.
type Group struct {
	// Index is the place in spec.computeGroups, which JSON Patch needs; it may change between two reads.
	Index    int
	UniqueID string
	// Declared are the replicas in the spec, nil when the field is absent.
	Declared *int32
	// Status is nil while the operator has not reported the group.
	Status *GroupStatus
}

// Replicas is how many replicas the operator makes of the spec: an absent field is 1.
func (g Group) Replicas() int32 {
	if g.Declared == nil {
		return 1
	}
	return *g.Declared
}

// GroupStatus is what the operator says of a group. Only Available is evidence: phase is Ready at zero and all the way
// through a scale-up, and replicas is a copy of the spec.
type GroupStatus struct {
	Phase           string
	Replicas        *int32
	Available       *int32
	AvailableStatus string
}

// Cluster is the object as it was read.
type Cluster struct {
	ResourceVersion string
	Generation      int64
	// ObservedGeneration is the newest spec that the operator has seen, nil when it does not say.
	ObservedGeneration *int64
	// Health is the operator's word, for people: it is red whenever half the groups sleep.
	Health string
	Groups []Group
}

// Observed reports whether the operator has seen the spec that the object has.
func (c Cluster) Observed() bool {
	return c.ObservedGeneration != nil && *c.ObservedGeneration >= c.Generation
}

// Group finds a group by its unique id.
func (c Cluster) Group(uniqueID string) (Group, error) {
	for _, g := range c.Groups {
		if g.UniqueID == uniqueID {
			return g, nil
		}
	}
	return Group{}, fmt.Errorf("compute group %q: %w", uniqueID, ErrNoGroup)
}

// parse reads the few fields that matter and ignores the rest.
func parse(data []byte) (Cluster, error) {
	var doc struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
			Generation      int64  `json:"generation"`
		} `json:"metadata"`
		Spec struct {
			ComputeGroups []struct {
				UniqueID string `json:"uniqueId"`
				Replicas *int32 `json:"replicas"`
			} `json:"computeGroups"`
		} `json:"spec"`
		Status struct {
			ObservedGeneration *int64 `json:"observedGeneration"`
			ClusterHealth      struct {
				Health string `json:"health"`
			} `json:"clusterHealth"`
			ComputeGroupStatuses []struct {
				UniqueID          string `json:"uniqueId"`
				Phase             string `json:"phase"`
				Replicas          *int32 `json:"replicas"`
				AvailableReplicas *int32 `json:"availableReplicas"`
				AvailableStatus   string `json:"availableStatus"`
			} `json:"computeGroupStatuses"`
		} `json:"status"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return Cluster{}, fmt.Errorf("decoding the custom resource: %w", err)
	}
	if doc.Metadata.ResourceVersion == "" {
		return Cluster{}, errors.New("decoding the custom resource: it has no resourceVersion")
	}
	c := Cluster{
		ResourceVersion: doc.Metadata.ResourceVersion, Generation: doc.Metadata.Generation,
		ObservedGeneration: doc.Status.ObservedGeneration, Health: doc.Status.ClusterHealth.Health,
	}
	for i, g := range doc.Spec.ComputeGroups {
		group := Group{Index: i, UniqueID: g.UniqueID, Declared: g.Replicas}
		for _, s := range doc.Status.ComputeGroupStatuses { // by id: the list is in the order of reconciling
			if s.UniqueID == g.UniqueID {
				group.Status = &GroupStatus{Phase: s.Phase, Replicas: s.Replicas, Available: s.AvailableReplicas, AvailableStatus: s.AvailableStatus}
			}
		}
		c.Groups = append(c.Groups, group)
	}
	return c, nil
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replicasPatch is the one write. It tests that the index still means the group and that the replicas are the ones that
// were decided upon. Where they are absent nothing can be tested of them, so the version of the object is. They are
// never removed: the operator would make 1 of that.
func replicasPatch(c Cluster, g Group, to int32) ([]byte, error) {
	base := fmt.Sprintf("/spec/computeGroups/%d", g.Index)
	ops := []operation{{"test", base + "/uniqueId", g.UniqueID}}
	if g.Declared != nil {
		ops = append(ops, operation{"test", base + "/replicas", *g.Declared}, operation{"replace", base + "/replicas", to})
	} else {
		ops = append(ops, operation{"test", "/metadata/resourceVersion", c.ResourceVersion}, operation{"add", base + "/replicas", to})
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return body, nil
}
