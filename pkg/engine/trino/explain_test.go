package trino

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlannedRows(t *testing.T) {
	for name, c := range map[string]struct {
		plan         string
		result, read any
	}{
		"a filter that is fused into its scan": {`{"0": {"name": "Output", "estimates": [{"outputRowCount": 5.0}], "children": [
			{"name": "ScanFilterProject", "estimates": [{"outputRowCount": 25.0}, {"outputRowCount": 5.0}, {"outputRowCount": 5.0}], "children": []}]}}`, 5.0, 25.0},
		"two scans in fragments of their own": {`{"0": {"name": "Output", "estimates": [{"outputRowCount": 1.0}], "children": [{"name": "RemoteSource", "estimates": [], "children": []}]},
			"1": {"name": "CrossJoin", "estimates": [{"outputRowCount": "NaN"}], "children": [{"name": "TableScan", "estimates": [{"outputRowCount": 7.0}], "children": []}]},
			"2": {"name": "TableScan", "estimates": [{"outputRowCount": 3.0}], "children": []}}`, 1.0, 10.0},
		"one of two scans is not known": {`{"0": {"name": "Output", "estimates": [{"outputRowCount": "NaN"}], "children": [
			{"name": "TableScan", "estimates": [{"outputRowCount": "NaN"}], "children": []}, {"name": "TableScan", "estimates": [{"outputRowCount": 3.0}], "children": []}]}}`, nil, nil},
		"an empty table is known":  {`{"0": {"name": "Output", "estimates": [{"outputRowCount": 0.0}], "children": [{"name": "TableScan", "estimates": [{"outputRowCount": 0.0}]}]}}`, 0.0, 0.0},
		"nothing is read":          {`{"0": {"name": "Output", "estimates": [{"outputRowCount": 1.0}], "children": [{"name": "Values", "estimates": [{"outputRowCount": 1.0}]}]}}`, 1.0, nil},
		"a scan without estimates": {`{"0": {"name": "TableScan"}}`, nil, nil},
		"no plan":                  {`CREATE TABLE memory.default.t`, nil, nil},
		"nothing":                  {``, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			result, read := planned(c.plan)
			for _, v := range []struct {
				want any
				got  *float64
			}{{c.result, result}, {c.read, read}} {
				if v.want == nil {
					require.Nil(t, v.got)
					continue
				}
				require.NotNil(t, v.got)
				require.Equal(t, v.want, *v.got)
			}
		})
	}
}
