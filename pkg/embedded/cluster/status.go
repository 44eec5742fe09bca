package cluster

import (
	"encoding/json"
	"strconv"
)

// report writes the group's status and the health of the whole, as doris-operator words them.
func (o *operator) report() {
	want, generation, _ := o.store.watch(o.group.UniqueID)
	available := o.available(want)
	o.store.setStatus(func(object map[string]any) map[string]any {
		return o.status(object, want, available, generation)
	})
}

func (o *operator) status(object map[string]any, want, available int32, generation int64) map[string]any {
	old, _ := object["status"].(map[string]any)
	statuses, _ := old["computeGroupStatuses"].([]any)
	entry := map[string]any{
		"uniqueId": o.group.UniqueID,
		// Ready says that no roll-out is under way: a group at zero is Ready, and one on its way up is too.
		"phase":             "Ready",
		"statefulsetName":   o.group.UniqueID,
		"serviceName":       o.group.UniqueID,
		"replicas":          number(int64(want)), // what the spec says, not what exists
		"availableReplicas": number(int64(available)),
		"availableStatus":   "UnAvailable",
	}
	if available > 0 {
		entry["availableStatus"] = "Available"
		entry["computeGroupId"] = "cg-" + o.group.UniqueID // filled from the backends, so a group without one has none
	}
	next := make([]any, 0, len(statuses)+1)
	found := false
	for _, s := range statuses {
		if m, ok := s.(map[string]any); ok && m["uniqueId"] == o.group.UniqueID {
			next, found = append(next, entry), true
			continue
		}
		next = append(next, s)
	}
	if !found {
		next = append(next, entry) // in the order of reconciling: never match it by index
	}
	return map[string]any{
		"observedGeneration":   number(max(generation, oldGeneration(old))),
		"computeGroupStatuses": next,
		"clusterHealth":        health(object, next),
		"feStatus":             map[string]any{"phase": "Ready", "availableStatus": "Available"},
		"metaServiceStatus":    map[string]any{"phase": "Ready", "availableStatus": "Available"},
	}
}

// health has the operator's arithmetic: a group at zero counts as not available, so one of two asleep is red.
func health(object map[string]any, statuses []any) map[string]any {
	total, available, full := int64(len(computeGroups(object))), int64(0), int64(0)
	for _, s := range statuses {
		m, _ := s.(map[string]any)
		if m["availableStatus"] == "Available" {
			available++
			if m["availableReplicas"] == m["replicas"] {
				full++
			}
		}
	}
	word := "green"
	switch {
	case available <= total/2:
		word = "red"
	case available < total:
		word = "yellow"
	}
	return map[string]any{
		"health": word, "feAvailable": true, "cgCount": number(total), "cgAvailableCount": number(available),
		"cgFullAvailableCount": number(full),
	}
}

func oldGeneration(status map[string]any) int64 {
	n, _ := status["observedGeneration"].(json.Number)
	g, _ := strconv.ParseInt(n.String(), 10, 64)
	return g
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
