package route_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

// filled gives every field of a value something, however deep, so that a field which is not written shows.
func filled(t *rapid.T, v reflect.Value, path string) {
	switch v.Type() {
	case reflect.TypeFor[*policy.Policy](), reflect.TypeFor[query.Extra]():
		return // the policy is known by its hash; what is not known of tomorrow is tested elsewhere
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(1, 4e9).Draw(t, path), rapid.Int64Range(0, 1e9-1).Draw(t, path)).UTC()))
		return
	case reflect.TypeFor[signal.Value]():
		at := time.Unix(rapid.Int64Range(1, 4e9).Draw(t, path), 0).UTC()
		value := signal.Of(rapid.Float64Range(-1e15, 1e15).Draw(t, path), signal.Bytes, "source", at)
		if rapid.Bool().Draw(t, path) {
			value = value.Aged(at.Add(time.Hour), time.Minute)
		}
		v.Set(reflect.ValueOf(value))
		return
	case reflect.TypeFor[shape.Value]():
		v.Set(reflect.ValueOf(rapid.SampledFrom([]shape.Value{
			shape.NumberValue("9223372036854775807"), shape.NumberValue("1.50"), shape.StringValue("<&>\u2028ü"), shape.BoolValue(true),
			shape.ListValue([]shape.Value{shape.StringValue("a"), shape.NumberValue("2")}),
		}).Draw(t, path)))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":[1,{"b":9007199254740993}]}`)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				filled(t, v.Field(i), path+"."+f.Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(t, v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(1, 2).Draw(t, path), 2))
		for i := range v.Len() {
			filled(t, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rapid.IntRange(1, 2).Draw(t, path) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			filled(t, key, path+".key")
			filled(t, value, path)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(rapid.StringMatching(`[a-zA-Zäöü0-9 <>&"'\\]{1,12}`).Draw(t, path))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(1, 1<<62).Draw(t, path))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64Range(1, 1<<64-1).Draw(t, path))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-1e300, 1e300).Draw(t, path))
	default:
		t.Fatalf("%s: how is a %s filled?", path, v.Type())
	}
}

// TestAnInputIsWrittenWhole: whatever field is added to Input, or to what it holds, is in its JSON and comes back as it was. A field
// that a decision depends on and that is left out would make replay wrong without a word.
func TestAnInputIsWrittenWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var in route.Input
		filled(rt, reflect.ValueOf(&in).Elem(), "Input")
		data, err := event.Marshal(in)
		require.NoError(rt, err)
		var back route.Input
		require.NoError(rt, json.Unmarshal(data, &back))
		require.Empty(rt, back.Extra)
		require.True(rt, reflect.DeepEqual(in, back), "%s", cmp.Diff(in, back, cmp.Exporter(func(reflect.Type) bool { return true })))
	})
}
