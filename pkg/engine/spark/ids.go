package spark

import "github.com/google/uuid"

// The namespaces of the ids. They must never change: a run is found by them.
var (
	operations = uuid.MustParse("6f3f3c1e-56a5-5a0e-9f5d-2c6f2f6a4b01")
	sessions   = uuid.MustParse("6f3f3c1e-56a5-5a0e-9f5d-2c6f2f6a4b02")
)

// names are what the server knows an attempt by. It takes UUIDs only.
type names struct{ session, operation string }

// namesOf gives the names of an attempt, the same in every process. What has no id is nobody's and can't be found.
func namesOf(attempt string) names {
	if attempt == "" {
		return names{uuid.NewString(), uuid.NewString()}
	}
	return names{uuid.NewSHA1(sessions, []byte(attempt)).String(), uuid.NewSHA1(operations, []byte(attempt)).String()}
}
