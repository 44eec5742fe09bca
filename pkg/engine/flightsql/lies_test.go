package flightsql_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/failure"
)

// TestColumnsOfNothing: what a schema announces is not believed without bound.
func TestColumnsOfNothing(t *testing.T) {
	fields := make([]arrow.Field, engine.MostColumns+1)
	for i := range fields {
		fields[i].Type = arrow.Null
	}
	schema := arrow.NewSchema(fields, nil)
	s := script(t, &scripted{info: tickets("a"), get: func(_ string, stream flight.FlightService_DoGetServer) error {
		return flight.NewRecordWriter(stream, ipc.WithSchema(schema)).Close()
	}})
	_, err := submit(t, s, engine.Query{ID: "wide/1"})
	require.ErrorIs(t, err, engine.ErrColumns)
	failed(t, err, engine.SentUnknown, failure.SubmitUnknown)
}
