package clickhouse

import (
	"context"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// flattened is the setting with which a server writes all that is in a JSON or Dynamic value where the driver looks for it. Without it the
// paths and types past a column's limit (JSON(max_dynamic_paths), Dynamic(max_types)) lie apart in a form that the driver does not know: it
// gives wrong values, also of the columns behind.
const flattened = "output_format_native_use_flattened_dynamic_and_json_serialization"

// flatteners are the servers that know it, from this version on. Others refuse a query that has a setting which they don't know.
var flatteners = proto.Version{Major: 25, Minor: 6}

// flattens says whether the server knows it, as the hello of the connections that the query uses has told. It costs no request.
func (e *Engine) flattens(ctx context.Context, conn driver.Conn) (bool, error) {
	if known := e.flat.Load(); known != nil {
		return *known, nil
	}
	type told struct {
		version *driver.ServerVersion
		err     error
	}
	answered := make(chan told, 1)
	go func() { // it takes no context; a hello is bounded, and ends with the client
		v, err := conn.ServerVersion()
		answered <- told{v, err}
	}()
	select {
	case t := <-answered:
		if t.err != nil {
			return false, t.err
		}
		flat := proto.CheckMinVersion(flatteners, t.version.Version)
		e.flat.Store(&flat)
		return flat, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
