package history

import (
	"errors"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// FaultKind says what a failed statement means for its caller. It is a metric label: the list is closed.
type FaultKind string

// The kinds.
const (
	// FaultTransient may pass by itself: the server is down, overloaded, or behind with merges. Try again, later.
	FaultTransient FaultKind = "transient"
	// FaultPartitions means that one block touches more partitions than the server takes: it succeeds only in parts.
	FaultPartitions FaultKind = "too_many_partitions"
	// FaultRows means that the server can't store a value.
	FaultRows FaultKind = "rows"
	// FaultSetup means that no statement of this kind can succeed until a person acts: no table, no right, a wrong password.
	FaultSetup FaultKind = "setup"
)

// transientCodes are the server's errors that pass.
var transientCodes = []int32{
	3,    // UNEXPECTED_END_OF_FILE
	159,  // TIMEOUT_EXCEEDED
	160,  // TOO_SLOW
	164,  // READONLY: a replica that is behind
	202,  // TOO_MANY_SIMULTANEOUS_QUERIES
	203,  // NO_FREE_CONNECTION
	209,  // SOCKET_TIMEOUT
	210,  // NETWORK_ERROR
	225,  // NO_ZOOKEEPER
	236,  // ABORTED
	241,  // MEMORY_LIMIT_EXCEEDED
	242,  // TABLE_IS_READ_ONLY
	243,  // NOT_ENOUGH_SPACE
	252,  // TOO_MANY_PARTS; its other meaning is told apart by the message
	285,  // TOO_FEW_LIVE_REPLICAS
	286,  // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	289,  // REPLICA_IS_NOT_IN_QUORUM
	319,  // UNKNOWN_STATUS_OF_INSERT
	394,  // QUERY_WAS_CANCELLED
	425,  // SYSTEM_ERROR
	439,  // CANNOT_SCHEDULE_TASK
	999,  // KEEPER_EXCEPTION
	1001, // STD_EXCEPTION
}

// rowCodes are the server's errors about values. They should not come: package row checks what it hands over.
var rowCodes = []int32{
	6,   // CANNOT_PARSE_TEXT
	27,  // CANNOT_PARSE_INPUT_ASSERTION_FAILED
	38,  // CANNOT_PARSE_DATE
	41,  // CANNOT_PARSE_DATETIME
	69,  // ARGUMENT_OUT_OF_BOUND
	70,  // CANNOT_CONVERT_TYPE
	72,  // CANNOT_PARSE_NUMBER
	117, // INCORRECT_DATA
	131, // TOO_LARGE_STRING_SIZE
	321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
	349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
	395, // FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
	469, // VIOLATED_CONSTRAINT
}

// Classify says what an error of a statement means, and the server's code for it, 0 when the error is not the server's.
// Code 252 has two meanings, and only its message tells them apart.
func Classify(err error) (kind FaultKind, code int32) {
	var ex *clickhouse.Exception
	if !errors.As(err, &ex) {
		return FaultTransient, 0
	}
	switch {
	case ex.Code == 252 && strings.Contains(ex.Message, "partitions for single INSERT block"):
		return FaultPartitions, ex.Code
	case slices.Contains(transientCodes, ex.Code):
		return FaultTransient, ex.Code
	case slices.Contains(rowCodes, ex.Code):
		return FaultRows, ex.Code
	default:
		return FaultSetup, ex.Code
	}
}
