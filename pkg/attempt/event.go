package attempt

import "slices"

// Event is something that happens to an attempt.
type Event string

// The events.
const (
	// Placed means that a decision, or a remedy, has put the attempt on a cluster.
	Placed Event = "placed"
	// SlotBusy means that every slot is taken and it has to stand in line.
	SlotBusy Event = "slot_busy"
	// SlotGranted means that it has a slot now.
	SlotGranted Event = "slot_granted"
	// PoolAsleep means that the pool is known not to be ready.
	PoolAsleep Event = "pool_asleep"
	// PoolReady means that the pool can run it now.
	PoolReady Event = "pool_ready"
	// PoolNeverReady means that the pool did not become ready within the bound.
	PoolNeverReady Event = "pool_never_ready"

	// ClaimStood means that its claim was read back and stands.
	ClaimStood Event = "claim_stood"
	// GuardHeld means that the submission may leave now.
	GuardHeld Event = "guard_held"
	// GuardRanOut means that too much time has passed since the claim, and nothing was sent.
	GuardRanOut Event = "guard_ran_out"
	// TakenOver means that another owner claimed it, and this one has to find out what became of it.
	TakenOver Event = "taken_over"

	// EngineQueued means that the engine has it in its queue.
	EngineQueued Event = "engine_queued"
	// EngineStarted means that the engine works on it.
	EngineStarted Event = "engine_started"
	// ResultBegan means that the first part of the result is there.
	ResultBegan Event = "result_began"
	// Delivered means that the whole result is stored.
	Delivered Event = "delivered"
	// DeliveryFailed means that the result could not be stored here.
	DeliveryFailed Event = "delivery_failed"
	// EngineFailed means that the engine ended it with an error, or refused it.
	EngineFailed Event = "engine_failed"
	// NotReached means that nothing of it reached the engine.
	NotReached Event = "not_reached"
	// ConnectionLost means that the submission or its answer got lost on the way.
	ConnectionLost Event = "connection_lost"

	// FoundRunningRead means that a look-up found a read whose result can't be had any more.
	FoundRunningRead Event = "found_running_read"
	// FoundRunningWrite means that a look-up found a write at work.
	FoundRunningWrite Event = "found_running_write"
	// FoundGoneRead means that the engine has nothing of a read, or can't be asked.
	FoundGoneRead Event = "found_gone_read"
	// FoundGoneWrite means that the engine has nothing of a write, or can't be asked, and nobody saw how it ended.
	FoundGoneWrite Event = "found_gone_write"
	// FoundFinished means that the engine says that a write went through.
	FoundFinished Event = "found_finished"
	// FoundFailed means that the engine says that it failed.
	FoundFailed Event = "found_failed"

	// CancelWished means that the user takes the Task back.
	CancelWished Event = "cancel_wished"
	// DeadlinePassed means that the Task's deadline has passed.
	DeadlinePassed Event = "deadline_passed"
	// EstimateOverran means that it takes far more than was estimated or than its resource profile gives it, or can't meet its
	// SLA any more: Bounds tell.
	EstimateOverran Event = "estimate_overran"
	// Abandoned means that this process stops acting for it: the partition moves, or the process ends.
	Abandoned Event = "abandoned"
)

var events = []Event{
	Placed, SlotBusy, SlotGranted, PoolAsleep, PoolReady, PoolNeverReady, ClaimStood, GuardHeld, GuardRanOut, TakenOver,
	EngineQueued, EngineStarted, ResultBegan, Delivered, DeliveryFailed, EngineFailed, NotReached, ConnectionLost,
	FoundRunningRead, FoundRunningWrite, FoundGoneRead, FoundGoneWrite, FoundFinished, FoundFailed,
	CancelWished, DeadlinePassed, EstimateOverran, Abandoned,
}

// Events returns all events.
func Events() []Event { return slices.Clone(events) }

// Effect is something that has to be done after a transition.
type Effect string

// The effects. An effect that Yields tells what happened by the next event; at most one of a transition does, and it is the
// last.
const (
	// Announce publishes the change without waiting for it.
	Announce Effect = "announce"
	// TakeSlot stands in the cluster's queue: slot_busy, slot_granted, pool_asleep, or pool_never_ready.
	TakeSlot Effect = "take_slot"
	// AwaitSlot goes on waiting in the queue: slot_granted or pool_asleep.
	AwaitSlot Effect = "await_slot"
	// FreeSlot gives the slot or the place in the queue back. It may be done twice.
	FreeSlot Effect = "free_slot"
	// AwaitPool waits for the pool: pool_ready or pool_never_ready.
	AwaitPool Effect = "await_pool"
	// WriteClaim writes a claim and reads it back: claim_stood.
	WriteClaim Effect = "write_claim"
	// CheckGuard asks whether the submission may still leave: guard_held or guard_ran_out.
	CheckGuard Effect = "check_guard"
	// Submit sends the query to the engine.
	Submit Effect = "submit"
	// NoteSubmitted writes to the ledger that the engine has it.
	NoteSubmitted Effect = "note_submitted"
	// Follow waits for what the engine does next.
	Follow Effect = "follow"
	// Deliver stores the rows: delivered, or a failure.
	Deliver Effect = "deliver"
	// StopEngine kills it at the engine and waits, within a bound, until it is gone.
	StopEngine Effect = "stop_engine"
	// AwaitGuard waits until a submission of an earlier owner would be seen at the engine.
	AwaitGuard Effect = "await_guard"
	// LookUp asks the engine for the attempt id: one of the found events. A submission whose connection has just broken may
	// still be on its way, so nothing counts as gone before it must have settled.
	LookUp Effect = "look_up"
	// WatchEngine waits until the engine has nothing of it any more, and looks it up again.
	WatchEngine Effect = "watch_engine"
	// WriteEnd writes the end to the ledger, reads it back and publishes what it holds.
	WriteEnd Effect = "write_end"
	// LetGo forgets the attempt here, without an end: its next owner goes on from the ledger.
	LetGo Effect = "let_go"
)

var effects = []Effect{
	Announce, TakeSlot, AwaitSlot, FreeSlot, AwaitPool, WriteClaim, CheckGuard, Submit, NoteSubmitted, Follow, Deliver,
	StopEngine, AwaitGuard, LookUp, WatchEngine, WriteEnd, LetGo,
}

// Effects returns all effects.
func Effects() []Effect { return slices.Clone(effects) }

// Yields reports whether the effect ends with the next event of the attempt.
func (e Effect) Yields() bool {
	switch e {
	case TakeSlot, AwaitSlot, AwaitPool, WriteClaim, CheckGuard, Follow, Deliver, LookUp, WatchEngine:
		return true
	default:
		return false
	}
}
