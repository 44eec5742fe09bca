package event

import "time"

// SlotKind says what a record of the slots topic is. A kind that a reader does not know changes nothing.
type SlotKind string

// The kinds of records about slots.
const (
	// SlotAsk asks for a slot: it holds once every cap of its places has room for it and for all that stand before it.
	SlotAsk SlotKind = "ask"
	// SlotRun says that an attempt is at an engine, or on its way there, and counts whatever the caps say.
	SlotRun SlotKind = "run"
	// SlotFree gives a slot back, or a place among those that wait for one.
	SlotFree SlotKind = "free"
	// SlotTake says that a partition of decisions has a new owner: what its owners before it asked for is void.
	SlotTake SlotKind = "take"
	// SlotCaps sets the caps, for all.
	SlotCaps SlotKind = "caps"
	// SlotTick says nothing but what time it is.
	SlotTick SlotKind = "tick"
	// SlotState is all that the records up to an offset come to, for readers that start behind it.
	SlotState SlotKind = "state"
)

// SlotRecord is one record about the slots that all executors share. Its place in the log and its append time are part of what it
// means; whether an ask holds, only a reader of the whole log knows.
type SlotRecord struct {
	Kind SlotKind `json:"kind"`
	// Owner is the executor that wrote it, unique per process start, and Seq numbers what it wrote.
	Owner string `json:"owner"`
	Seq   int64  `json:"seq"`
	// Partition is that of decisions which the attempt belongs to, and Epoch that of its ledger's lease there.
	Partition int32 `json:"partition"`
	Epoch     int64 `json:"epoch,omitempty"`

	SlotWant
	Caps  *Caps          `json:"caps,omitempty"`
	State *SlotsSnapshot `json:"state,omitempty"`
}

// SlotWant is who wants a slot, and of what.
type SlotWant struct {
	AttemptID string `json:"attemptId,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Queue     string `json:"queue,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
	// Higher priorities go first, then those whose Task came first.
	Priority int       `json:"priority,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Expires is when the slot comes back by itself, by the broker's clock: nothing of the Task runs that long.
	Expires time.Time `json:"expires,omitzero"`
}

// Caps are the most attempts at once, all executors together. 0, or no entry, sets no cap.
type Caps struct {
	Clusters map[string]int            `json:"clusters,omitempty"`
	Queues   map[string]map[string]int `json:"queues,omitempty"` // by cluster
	Tenants  map[string]int            `json:"tenants,omitempty"`
	// Tenant is the cap of a tenant that has none of its own.
	Tenant int `json:"tenant,omitempty"`
}

// SlotsSnapshot is what the records of the slots topic come to.
type SlotsSnapshot struct {
	// Next is the offset of the first record that is not in it.
	Next int64     `json:"next"`
	At   time.Time `json:"at"` // append time of the newest record in it
	Caps Caps      `json:"caps"`
	// Epochs are the newest by partition.
	Epochs  map[int32]int64 `json:"epochs,omitempty"`
	Entries []SlotEntry     `json:"entries,omitempty"`
}

// SlotEntry is an attempt that has a slot or waits for one.
type SlotEntry struct {
	Owner     string `json:"owner"`
	Seq       int64  `json:"seq"`
	Partition int32  `json:"partition"`
	Epoch     int64  `json:"epoch"`
	Held      bool   `json:"held,omitempty"`
	SlotWant
}
