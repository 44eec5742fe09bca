package spark

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

// TestColumnsOfNothing: what a schema announces is not believed without bound.
func TestColumnsOfNothing(t *testing.T) {
	fields := make([]*connect.DataType_StructField, engine.MostColumns+1)
	for i := range fields {
		fields[i] = &connect.DataType_StructField{}
	}
	r := &rows{}
	err := r.take(&connect.ExecutePlanResponse{Schema: &connect.DataType{Kind: &connect.DataType_Struct_{Struct: &connect.DataType_Struct{Fields: fields}}}})
	require.ErrorIs(t, err, engine.ErrColumns)
	require.Empty(t, r.Columns())
}
