package flightsql

// What goes along with every call of an attempt, in headers. A server, or a proxy in front of it, that does not know them passes them
// over. Settings of a resource profile are headers under their own names.
const (
	HeaderAttempt   = "pointsman-attempt-id"
	HeaderTimeLimit = "pointsman-max-execution-ms"
	HeaderMemory    = "pointsman-max-memory-bytes"
	HeaderReadOnly  = "pointsman-read-only" // true, or absent
)

// The actions of a server that can be asked by the attempt id, and that lists them among its actions. A body is the attempt id, or
// empty for the load; an answer is one result with JSON: a Statement, a Killed or a Load.
const (
	ActionFind = "pointsman.FindStatement"
	ActionKill = "pointsman.KillStatement" // answers once it is gone
	ActionLoad = "pointsman.Load"
)

// The domain and the reason of an error (google.rpc.ErrorInfo) with which such a server refuses an attempt id that it runs already.
const (
	ErrorDomain     = "pointsman"
	ReasonDuplicate = "DUPLICATE_ATTEMPT"
)

// Statement is what a server knows of an attempt. What it does not know is nil.
type Statement struct {
	// Running says that it waits or runs. A server keeps no finished ones.
	Running bool `json:"running"`
	// Waiting says that it has not begun.
	Waiting         bool   `json:"waiting,omitempty"`
	ElapsedMs       *int64 `json:"elapsedMs,omitempty"`
	ReadRows        *int64 `json:"readRows,omitempty"`
	ReadBytes       *int64 `json:"readBytes,omitempty"`
	PeakMemoryBytes *int64 `json:"peakMemoryBytes,omitempty"`
}

// Killed says whether there was anything to kill.
type Killed struct {
	Found bool `json:"found"`
}

// Load is what a server says of itself.
type Load struct {
	Running         *int64 `json:"running,omitempty"`
	MemoryUsedBytes *int64 `json:"memoryUsedBytes,omitempty"`
}
