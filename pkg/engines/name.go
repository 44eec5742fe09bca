package engines

import "github.com/pointsman/pointsman/pkg/engine/wire"

// Name is what an engine of a kind calls an attempt: in its list of queries, its log or its UI, where a person looks for it.
func Name(kind, attemptID string) string {
	switch kind {
	case "clickhouse", "trino": // they carry any id
		return attemptID
	default:
		return wire.Name(attemptID)
	}
}
