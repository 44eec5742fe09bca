package trino

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// results is the server's answer to a statement and to each request for a page of it.
type results struct {
	ID          string      `json:"id"`
	NextURI     string      `json:"nextUri"`
	Columns     []column    `json:"columns"`
	Data        *table      `json:"-"`
	Stats       pageStats   `json:"stats"`
	Error       *queryError `json:"error"`
	UpdateType  string      `json:"updateType"`
	UpdateCount *int64      `json:"updateCount"`
}

type column struct {
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	Signature signature `json:"typeSignature"`
}

// pageStats are the counts of the query as a whole. A double that is not known is the text "NaN".
type pageStats struct {
	State              string `json:"state"`
	ProcessedRows      int64  `json:"processedRows"`
	ProcessedBytes     int64  `json:"processedBytes"`
	PhysicalInputBytes int64  `json:"physicalInputBytes"`
	PeakMemoryBytes    int64  `json:"peakMemoryBytes"`
}

type queryError struct {
	Message   string `json:"message"`
	ErrorCode int    `json:"errorCode"`
	ErrorName string `json:"errorName"`
	ErrorType string `json:"errorType"`
}

// queryInfo is what the server tells of a query to whoever asks for it, in the list of queries and by its id.
type queryInfo struct {
	QueryID string `json:"queryId"`
	State   string `json:"state"`
	Final   bool   `json:"finalQueryInfo"` // by id only: nothing of it runs on any worker
	Session struct {
		User       string   `json:"user"`
		Source     string   `json:"source"`
		TraceToken string   `json:"traceToken"`
		ClientTags []string `json:"clientTags"`
	} `json:"session"`
	ResourceGroup []string `json:"resourceGroupId"`
	Stats         struct {
		ExecutionTime      duration `json:"executionTime"`
		RawInputPositions  int64    `json:"rawInputPositions"`
		RawInputDataSize   dataSize `json:"rawInputDataSize"`
		PhysicalInput      dataSize `json:"physicalInputDataSize"`
		PeakTotalMemory    dataSize `json:"peakTotalMemoryReservation"`
		ProgressPercentage percent  `json:"progressPercentage"`
	} `json:"queryStats"`
	ErrorType string `json:"errorType"`
	ErrorCode *struct {
		Code int    `json:"code"`
		Name string `json:"name"`
	} `json:"errorCode"`
	Failure *struct {
		Message string `json:"message"`
	} `json:"failureInfo"` // by id only
}

// The states that a query waits in, and those that it ends in; all others are of work.
const (
	stateQueued   = "QUEUED"
	stateWaiting  = "WAITING_FOR_RESOURCES"
	stateFinished = "FINISHED"
	stateFailed   = "FAILED"
)

// activeStates are asked for by name, since a list of all queries holds the history too, which is long.
var activeStates = []string{stateQueued, stateWaiting, "DISPATCHING", "PLANNING", "STARTING", "RUNNING", "FINISHING"}

func (i queryInfo) over() bool { return i.State == stateFinished || i.State == stateFailed }

// stats are the port's. A connector that counts no bytes reports 0 of them beside its rows: that is not known, and so is a
// peak of nothing.
func stats(state string, rows, physical, raw, peak int64) event.Stats {
	var s event.Stats
	if state == "" || state == stateQueued {
		return s
	}
	s.ReadRows = &rows
	switch {
	case physical > 0:
		s.ReadBytes = &physical
	case raw > 0 || rows == 0:
		s.ReadBytes = &raw
	}
	if peak > 0 {
		s.PeakMemoryBytes = &peak
	}
	return s
}

func (i queryInfo) stats() event.Stats {
	q := i.Stats
	return stats(i.State, q.RawInputPositions, int64(q.PhysicalInput), int64(q.RawInputDataSize), int64(q.PeakTotalMemory))
}

// merge keeps the most that was said: the last page of a write counts from nothing again.
func (s *pageStats) merge(next pageStats) {
	s.State = next.State
	s.ProcessedRows = max(s.ProcessedRows, next.ProcessedRows)
	s.ProcessedBytes = max(s.ProcessedBytes, next.ProcessedBytes)
	s.PhysicalInputBytes = max(s.PhysicalInputBytes, next.PhysicalInputBytes)
	s.PeakMemoryBytes = max(s.PeakMemoryBytes, next.PeakMemoryBytes)
}

// units of Trino's durations and sizes, such as 1.50m and 1205862400B.
var (
	durationUnits = map[string]float64{
		"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 24 * 3600e9,
	}
	sizeUnits = map[string]float64{"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}
)

func quantity(text string, units map[string]float64) (float64, error) {
	at := strings.LastIndexAny(text, "0123456789.") + 1
	n, err := strconv.ParseFloat(text[:at], 64)
	unit, known := units[text[at:]]
	if err != nil || !known || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%q is no quantity that Trino writes", text)
	}
	return n * unit, nil
}

type duration time.Duration

// UnmarshalJSON reads 409.21ms.
func (d *duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	n, err := quantity(text, durationUnits)
	*d = duration(n)
	return err
}

type dataSize int64

// UnmarshalJSON reads 1205862400B.
func (s *dataSize) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	n, err := quantity(text, sizeUnits)
	*s = dataSize(n)
	return err
}

// percent is a share that may be unknown, which Trino writes as nothing, null or the text "NaN".
type percent struct {
	known bool
	of100 float64
}

// UnmarshalJSON reads a number; what is none is unknown.
func (p *percent) UnmarshalJSON(raw []byte) error {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		*p = percent{}
		return nil
	}
	*p = percent{known: true, of100: n}
	return nil
}
