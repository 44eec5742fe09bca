package enginetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
)

// End runs a statement to its end.
func End(ctx context.Context, e engine.Engine, q engine.Query) error {
	rows, err := e.Submit(ctx, q)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

// ClassOf is what becomes of an error of a statement: its code, which must be in its engine's table, and its class.
func ClassOf(t testing.TB, err error) (code string, class failure.Class, phase engine.Phase) {
	t.Helper()
	var e *engine.Error
	require.ErrorAs(t, err, &e)
	f := failure.Classify(failure.Report{Engine: e.Engine, Code: e.Code, Name: e.Name, Type: e.Type, Message: e.Error(), Reach: failure.Reach(e.Phase)})
	require.NotContains(t, f.Hint, "not in pointsman's table", "%v", err)
	return e.Code, failure.Class(f.Class), e.Phase
}
