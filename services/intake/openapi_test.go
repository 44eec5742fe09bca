package intake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/signal"
	"github.com/pointsman/pointsman/services/intake/openapi"
	"github.com/pointsman/pointsman/services/intake/problem"
)

func description(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	require.NoError(t, json.Unmarshal(openapi.JSON(), &doc))
	return doc
}

func at(v any, path ...string) any {
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

// Every route is described, and nothing is described that there is not.
func TestRoutesAreDescribed(t *testing.T) {
	doc := description(t)
	require.Equal(t, "3.1.0", doc["openapi"])
	var have, want []string
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			have = append(have, strings.ToUpper(method)+" "+path)
			require.NotEmpty(t, at(op, "operationId"), path)
			require.NotEmpty(t, at(op, "responses"), path)
		}
	}
	for _, rt := range (&server{}).routes() {
		want = append(want, rt.method+" "+strings.ReplaceAll(rt.path, "{$}", ""))
		open := at(doc, "paths", strings.ReplaceAll(rt.path, "{$}", ""), strings.ToLower(rt.method), "security")
		if rt.open {
			require.Empty(t, open, rt.path)
			require.NotNil(t, open, "%s is open, and must say so", rt.path)
		} else {
			require.Nil(t, open, rt.path)
		}
	}
	require.ElementsMatch(t, want, have)
}

func TestProblemCodesAreDescribed(t *testing.T) {
	doc := description(t)
	var have, want []string
	for _, c := range at(doc, "components", "schemas", "Problem", "properties", "code", "enum").([]any) {
		have = append(have, c.(string))
	}
	for _, c := range problem.Codes() {
		want = append(want, string(c))
	}
	require.ElementsMatch(t, want, have)
}

// A value of each Go type with every field set fits its schema, has no field that the schema lacks, and lacks none that
// the schema has.
func TestTypesAreDescribed(t *testing.T) {
	schemas := strict(t)
	for name, v := range map[string]any{
		"Task": &query.Task{}, "Session": &query.Session{}, "Accepted": &Accepted{}, "Links": &Links{}, "TaskAnswer": &TaskAnswer{},
		"RouteDecision": &event.RouteDecision{}, "Cancel": &event.Cancel{}, "Target": &event.Target{}, "Reason": &event.Reason{},
		"Filtered": &event.Filtered{}, "Candidate": &event.Candidate{}, "CandidateEstimate": &event.CandidateEstimate{},
		"Evidence": &event.Evidence{}, "Factor": &event.Factor{}, "Value": &signal.Value{}, "Rejection": &event.Rejection{},
		"Attempt": &event.Attempt{}, "Failure": &event.Failure{}, "Stats": &event.Stats{}, "Outcome": &event.Outcome{},
		"Result": &event.Result{}, "Column": &event.Column{}, "InlineResult": &InlineResult{}, "Problem": &problem.Problem{},
		"FieldError": &problem.Field{}, "TaskList": &TaskList{}, "TaskSummary": &TaskSummary{}, "Loss": &event.Loss{}, "Flip": &event.Flip{}, "Exploration": &event.Exploration{},
	} {
		t.Run(name, func(t *testing.T) {
			fill(reflect.ValueOf(v).Elem(), 0)
			data, err := event.Marshal(v)
			require.NoError(t, err)
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
			require.NoError(t, err)
			schema, err := schemas.compiler.Compile(schemas.url + "#/components/schemas/" + name)
			require.NoError(t, err)
			require.NoError(t, schema.Validate(value), string(data))

			var described, written []string
			for p := range at(schemas.doc, "components", "schemas", name, "properties").(map[string]any) {
				described = append(described, p)
			}
			for p := range value.(map[string]any) {
				written = append(written, p)
			}
			slices.Sort(described)
			slices.Sort(written)
			require.Equal(t, described, written)
		})
	}
}

type strictSchemas struct {
	compiler *jsonschema.Compiler
	url      string
	doc      any
}

// strict closes every object that lists properties, so that a field nobody has described is found.
func strict(t *testing.T) strictSchemas {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(openapi.JSON()))
	require.NoError(t, err)
	for _, s := range at(doc, "components", "schemas").(map[string]any) {
		if m := s.(map[string]any); m["properties"] != nil {
			m["additionalProperties"] = false
		}
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	const url = "mem://intake/openapi.json"
	require.NoError(t, c.AddResource(url, doc))
	return strictSchemas{c, url, doc}
}

var (
	valueType = reflect.TypeFor[signal.Value]()
	timeType  = reflect.TypeFor[time.Time]()
	rawType   = reflect.TypeFor[json.RawMessage]()
	extraType = reflect.TypeFor[query.Extra]()
)

// fill sets every field to something that is not empty. Types that hold themselves (an attempt's decision) end after a
// few levels.
func fill(v reflect.Value, depth int) {
	switch v.Type() {
	case valueType:
		v.Set(reflect.ValueOf(signal.Of(1, signal.Count, "test", time.Unix(1, 0))))
		return
	case reflect.TypeFor[signal.Number]():
		v.Set(reflect.ValueOf(signal.Num(1)))
		return
	case timeType:
		v.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
		return
	case extraType, reflect.TypeFor[error]():
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case !f.IsExported() || f.Tag.Get("json") == "-":
			case f.Type == rawType || (f.Type.Kind() == reflect.Slice && f.Type.Elem() == rawType):
				fillRaw(v.Field(i), f.Name)
			default:
				fill(v.Field(i), depth)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), elem)
	case reflect.String:
		v.SetString("eventual") // fits every enum of a Task
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	default:
		panic(fmt.Sprintf("a field of type %s", v.Type()))
	}
	if p, ok := reflect.TypeAssert[*problem.Problem](v.Addr()); ok {
		p.Code, p.Type = problem.NotJSON, "urn:pointsman:problem:not_json"
	}
}

// fillRaw gives what is passed on as it came a value of its own type.
func fillRaw(v reflect.Value, name string) {
	raw := map[string]string{"Inline": `[[1]]`, "Rows": `[[1]]`, "Intent": `{"a":1}`, "Task": `{"sql":"SELECT 1"}`}[name]
	if raw == "" { // decisions
		var d event.RouteDecision
		fill(reflect.ValueOf(&d).Elem(), 0)
		data, err := event.Marshal(d)
		if err != nil {
			panic(err)
		}
		raw = string(data)
	}
	if v.Type() == rawType {
		v.SetBytes([]byte(raw))
		return
	}
	v.Set(reflect.ValueOf([]json.RawMessage{json.RawMessage(raw)}))
}

func TestYAMLAndJSONAreTheSame(t *testing.T) {
	require.True(t, bytes.HasPrefix(openapi.YAML(), []byte("openapi: 3.1.0")))
	require.True(t, json.Valid(openapi.JSON()))
}
