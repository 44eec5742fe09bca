package workload

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Templates is the number of TPC-H templates. The trace's template 23 is a refresh: it writes, and is left out.
const Templates = 22

//go:embed trace/cab.csv
var cabTrace string

// traceLength is what the trace covers.
const traceLength = time.Hour

// traceRow is one read of the trace.
type traceRow struct {
	at       time.Duration
	stream   int
	template int
	args     []any
}

func readTrace(r io.Reader) ([]traceRow, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("reading trace header: %w", err)
	}
	column := map[string]int{}
	for i, name := range header {
		column[name] = i
	}
	var rows []traceRow
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading trace: %w", err)
		}
		line, _ := in.FieldPos(0)
		field := func(name string) string {
			if i, ok := column[name]; ok {
				return record[i]
			}
			return ""
		}
		row, err := parseRow(field)
		if err != nil {
			return nil, fmt.Errorf("reading trace, line %d: %w", line, err)
		}
		rows = append(rows, row)
	}
}

func parseRow(field func(string) string) (traceRow, error) {
	var n [3]int
	for i, name := range []string{"arrival_ms", "stream", "template"} {
		var err error
		if n[i], err = strconv.Atoi(field(name)); err != nil {
			return traceRow{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	row := traceRow{at: time.Duration(n[0]) * time.Millisecond, stream: n[1], template: n[2]}
	if row.template < 1 || row.template > Templates {
		return traceRow{}, fmt.Errorf("template %d is not a read", row.template)
	}
	args := json.NewDecoder(strings.NewReader(field("args")))
	args.UseNumber() // numbers go into the text as they are written
	if err := args.Decode(&row.args); err != nil {
		return traceRow{}, fmt.Errorf("args: %w", err)
	}
	return row, nil
}
