package attempt

// Transition is the answer of the table to an event.
type Transition struct {
	Next State
	Do   []Effect
	Why  string
}

type row = map[Event]Transition

// do keeps the table's lines readable.
func do(e ...Effect) []Effect { return e }

// The three ends that do not come from the engine look the same from every state; what has to be stopped first differs.
var (
	cancelQuiet = Transition{Cancelled, do(FreeSlot, WriteEnd), "the user takes it back before anything was sent"}
	cancelLive  = Transition{Cancelled, do(StopEngine, FreeSlot, WriteEnd), "the user takes it back: the engine is told to stop first"}
	lateQuiet   = Transition{TimedOut, do(FreeSlot, WriteEnd), "nothing starts past the Task's deadline"}
	lateLive    = Transition{TimedOut, do(StopEngine, FreeSlot, WriteEnd), "the Task's deadline passed: the engine is told to stop first"}
	overran     = Transition{Overrun, do(StopEngine, FreeSlot, WriteEnd), "the estimate was wrong; the query's intent is unchanged, so it may go elsewhere"}
	broken      = Transition{Failed, do(FreeSlot, WriteEnd), "the engine said no"}
	unreached   = Transition{Failed, do(FreeSlot, WriteEnd), "nothing was sent, so going elsewhere is safe"}
	doubt       = Transition{SubmitUnknown, do(Announce, LookUp), "the engine may or may not have it: look it up, and believe that it has nothing once the submission must have settled"}
)

// letGo is what every state that is no end does when the partition moves or the process ends: a query at the engine is left
// to the next owner, and no attempt is used up.
func letGo(s State) Transition {
	return Transition{s, do(FreeSlot, LetGo), "the next owner goes on from the ledger"}
}

var table = map[State]row{
	AwaitingSlot: {
		Placed:         {AwaitingSlot, do(Announce, TakeSlot), "a decision or a remedy put it on this cluster"},
		SlotBusy:       {AwaitingSlot, do(Announce, AwaitSlot), "every slot is taken: its place in the line is published"},
		PoolAsleep:     {AwaitingCapacity, do(FreeSlot, Announce, AwaitPool), "the pool is known not to be ready; the slot is not held meanwhile"},
		PoolNeverReady: {Failed, do(FreeSlot, WriteEnd), "nobody here knows such a cluster; nothing was sent"},
		SlotGranted:    {AwaitingSlot, do(WriteClaim), "it has a slot; nothing may be sent before its claim stands"},
		ClaimStood:     {Claimed, do(Announce, CheckGuard), "the claim was read back"},
		CancelWished:   cancelQuiet,
		DeadlinePassed: lateQuiet,
		Abandoned:      letGo(AwaitingSlot),
	},
	AwaitingCapacity: {
		PoolReady:      {AwaitingSlot, do(Announce, TakeSlot), "the pool is awake: it lines up again"},
		PoolNeverReady: {Failed, do(FreeSlot, WriteEnd), "waiting longer would spend the Task's time; nothing was sent"},
		CancelWished:   cancelQuiet,
		DeadlinePassed: lateQuiet,
		Abandoned:      letGo(AwaitingCapacity),
	},
	Claimed: {
		GuardHeld:      {Submitting, do(Announce, Submit, Follow), "the submission leaves within the guard of its claim"},
		GuardRanOut:    {AwaitingSlot, do(WriteClaim), "a new claim starts a new guard for whoever comes after"},
		TakenOver:      {SubmitUnknown, do(Announce, AwaitGuard, LookUp), "its old owner may have sent it until its guard ran out"},
		CancelWished:   cancelQuiet,
		DeadlinePassed: lateQuiet,
		Abandoned:      letGo(Claimed),
	},
	Submitting: {
		EngineQueued:    {Queued, do(NoteSubmitted, Announce, Follow), "the engine has it in its queue"},
		EngineStarted:   {Running, do(NoteSubmitted, Announce, Follow), "the engine works on it"},
		GuardRanOut:     {AwaitingSlot, do(WriteClaim), "the adapter found the guard over just before it sent"},
		NotReached:      unreached,
		EngineFailed:    broken,
		ConnectionLost:  doubt,
		CancelWished:    cancelLive,
		DeadlinePassed:  lateLive,
		EstimateOverran: overran,
		Abandoned:       letGo(Submitting),
	},
	SubmitUnknown: {
		FoundRunningRead:  {SubmitUnknown, do(StopEngine, LookUp), "its result can't be had any more, and running a read twice at once wastes the cluster"},
		FoundRunningWrite: {SubmitUnknown, do(WatchEngine), "a write is never stopped halfway by a change of owners"},
		FoundGoneRead:     {Lost, do(FreeSlot, WriteEnd), "a read may run again as a new attempt"},
		FoundGoneWrite:    {Failed, do(FreeSlot, WriteEnd), "a write of unknown fate is never run again: a person has to look"},
		FoundFinished:     {Succeeded, do(FreeSlot, WriteEnd), "the engine vouches for it"},
		FoundFailed:       broken,
		CancelWished:      cancelLive,
		DeadlinePassed:    lateLive,
		Abandoned:         letGo(SubmitUnknown),
	},
	Queued: {
		EngineStarted:   {Running, do(Announce, Follow), "the engine works on it"},
		EngineFailed:    broken,
		ConnectionLost:  doubt,
		CancelWished:    cancelLive,
		DeadlinePassed:  lateLive,
		EstimateOverran: overran,
		Abandoned:       letGo(Queued),
	},
	Running: {
		ResultBegan:     {Delivering, do(Announce, Deliver), "the first rows are there"},
		EngineFailed:    broken,
		ConnectionLost:  doubt,
		TakenOver:       {SubmitUnknown, do(Announce, LookUp), "its old owner wrote that the engine had it, so no guard has to pass"},
		CancelWished:    cancelLive,
		DeadlinePassed:  lateLive,
		EstimateOverran: overran,
		Abandoned:       letGo(Running),
	},
	Delivering: {
		Delivered:       {Succeeded, do(FreeSlot, WriteEnd), "the whole result is stored"},
		DeliveryFailed:  {Failed, do(StopEngine, FreeSlot, WriteEnd), "the result can't be stored here"},
		EngineFailed:    broken,
		ConnectionLost:  doubt,
		CancelWished:    cancelLive,
		DeadlinePassed:  lateLive,
		EstimateOverran: overran,
		Abandoned:       letGo(Delivering),
	},
	// The ends take no event: whatever comes late is void, and the ledger says so.
	Succeeded: {}, Failed: {}, TimedOut: {}, Overrun: {}, Cancelled: {}, Lost: {},
}
