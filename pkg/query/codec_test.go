package query

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// every has a field of each kind that events have.
type every struct {
	Text    string            `json:"text"`
	Word    Consistency       `json:"word,omitempty"`
	Yes     bool              `json:"yes,omitempty"`
	N       int               `json:"n"`
	Small   int32             `json:"small,omitempty"`
	Large   *int64            `json:"large,omitempty"`
	F       float64           `json:"f"`
	G       *float64          `json:"g,omitempty"`
	At      time.Time         `json:"at"`
	Later   time.Time         `json:"later,omitzero"`
	Ever    *time.Time        `json:"ever,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	List    []string          `json:"list,omitempty"`
	Always  []int             `json:"always"`
	Map     map[string]string `json:"map,omitempty"`
	Deep    map[Consistency]map[string]inner
	Inner   *inner  `json:"inner,omitempty"`
	Objects []inner `json:"objects,omitempty"`
	Flat
	Other inner `json:"other"`
	Task  *Task `json:"task,omitempty"`
	Own   ownly `json:"own"`
	Skip  int   `json:"-"`

	Extra Extra `json:"-"`
}

type inner struct {
	A string `json:"a"`
	B *inner `json:"b,omitempty"`
}

// Flat is embedded: its fields lie flat in the object.
type Flat struct {
	Engine string `json:"engine"`
	Queue  string `json:"queue,omitempty"`
}

// ownly writes itself, and is converted.
type ownly struct{ n int }

func (o ownly) MarshalJSON() ([]byte, error) { return json.Marshal(ownWire{o.n, o.n > 0}) }

func (o *ownly) UnmarshalJSON(data []byte) error {
	var w ownWire
	err := json.Unmarshal(data, &w)
	o.n = w.N
	return err
}

type ownWire struct {
	N    int  `json:"n"`
	More bool `json:"more,omitempty"`
}

var fast = NewCodec(Via(
	func(o *ownly, w *ownWire) bool { *w = ownWire{o.n, o.n > 0}; return o.n != 13 },
	func(w *ownWire, o *ownly) bool { o.n = w.N; return w.N != 13 },
))

func genEvery(t *rapid.T) every {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a<b&c>", "\u2028\u2029", "bad\xffutf", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "ä€😀"}))
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, 1e-7, 1e21, 123456789, -0.5, 5e-324}))
	at := rapid.Custom(func(t *rapid.T) time.Time {
		zone := time.FixedZone("", rapid.SampledFrom([]int{0, 3600, -7 * 3600, 90}).Draw(t, "zone"))
		return time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).In(zone)
	})
	in := rapid.Custom(func(t *rapid.T) inner {
		return inner{A: text.Draw(t, "a"), B: rapid.Ptr(rapid.Custom(func(t *rapid.T) inner { return inner{A: text.Draw(t, "aa")} }), true).Draw(t, "b")}
	})
	v := every{
		Text: text.Draw(t, "text"), Word: Consistency(text.Draw(t, "word")), Yes: rapid.Bool().Draw(t, "yes"), N: rapid.Int().Draw(t, "n"),
		Small: rapid.Int32().Draw(t, "small"), Large: rapid.Ptr(rapid.Int64(), true).Draw(t, "large"), F: number.Draw(t, "f"),
		G: rapid.Ptr(number, true).Draw(t, "g"), At: at.Draw(t, "at"), Ever: rapid.Ptr(at, true).Draw(t, "ever"),
		Raw:  json.RawMessage(rapid.SampledFrom([]string{"", "null", "[1, 2]", `{"x": "<"}`, "no json"}).Draw(t, "raw")),
		List: rapid.SliceOfN(text, 0, 3).Draw(t, "list"), Always: rapid.SampledFrom([][]int{nil, {}, {1, 2}}).Draw(t, "always"),
		Map:   rapid.MapOfN(text, text, 0, 3).Draw(t, "map"),
		Inner: rapid.Ptr(in, true).Draw(t, "inner"), Objects: rapid.SliceOfN(in, 0, 2).Draw(t, "objects"),
		Flat: Flat{Engine: text.Draw(t, "engine"), Queue: text.Draw(t, "queue")}, Other: in.Draw(t, "other"),
		Own: ownly{rapid.IntRange(-1, 14).Draw(t, "own")},
	}
	if rapid.Bool().Draw(t, "later?") {
		v.Later = at.Draw(t, "later")
	}
	if rapid.Bool().Draw(t, "deep?") {
		v.Deep = map[Consistency]map[string]inner{"x": {text.Draw(t, "deep"): in.Draw(t, "deepest")}, "<": nil}
	}
	if rapid.Bool().Draw(t, "task?") {
		v.Task = &Task{SQL: text.Draw(t, "sql"), Extra: rapid.SampledFrom([]Extra{nil, {"zeta": json.RawMessage(`{"b": 1}`), "<a>": json.RawMessage("null")}}).Draw(t, "task extra")}
	}
	return v
}

// TestCodecWritesWhatEncodingJSONWrites is the codec's whole contract on the way out.
func TestCodecWritesWhatEncodingJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genEvery(t)
		extra := rapid.SampledFrom([]Extra{nil, {}, {"b": json.RawMessage("[ ]"), "a\n": json.RawMessage(`"<"`)}, {"bad": json.RawMessage("{")}, {"nil": nil}}).Draw(t, "extra")
		want, wantErr := encodeObject(v, extra)
		got, err := fast.Encode(v, extra)
		require.Equal(t, wantErr == nil, err == nil, "%v, %v", wantErr, err)
		require.Equal(t, string(want), string(got))
		got, err = fast.Encode(&v, extra)
		require.Equal(t, wantErr == nil, err == nil)
		require.Equal(t, string(want), string(got))
	})
}

// readBoth reads with and without plans, and demands one result.
func readBoth[T any](t require.TestingT, c *Codec, data []byte) {
	var got, want T
	wantExtra, wantErr := decodeObject(data, &want)
	gotExtra, err := c.Decode(data, &got)
	if wantErr != nil {
		require.Error(t, err, "%q", data)
		require.Equal(t, wantErr.Error(), err.Error())
		return
	}
	require.NoError(t, err, "%q", data)
	require.Equal(t, wantExtra, gotExtra, "%q", data)
	// The alias of an object that keeps unknown fields has them set by whoever knows them.
	if f := reflect.ValueOf(&got).Elem().FieldByName("Extra"); f.IsValid() {
		f.SetZero()
	}
	require.Empty(t, cmp.Diff(want, got, cmp.AllowUnexported(every{}, ownly{})), "%q", data)
}

func TestCodecReadsWhatEncodingJSONReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genEvery(t)
		v.Raw = json.RawMessage(`{"x": [1,2,{"y":null}]}`)
		data, err := encodeObject(v, Extra{"zeta": json.RawMessage(`{"a":9007199254740993}`)})
		require.NoError(t, err)
		readBoth[every](t, fast, data)
		// Whatever is broken in it is broken in the same way.
		for range 20 {
			broken := append([]byte(nil), data...)
			at := rapid.IntRange(0, len(broken)-1).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				broken[at] = rapid.SampledFrom([]byte("{}[],:\"\\0-9.eEtfnu \n\x00\xff/")).Draw(t, "byte")
			case 1:
				broken = append(broken[:at], broken[at+1:]...)
			case 2:
				broken = broken[:at]
			case 3:
				insert := rapid.SampledFrom([]string{"null", ",", `"a":1,`, `"TEXT":"x",`, `"text":"again",`, " ", "\t", `\u0041`, "{", `"ſmall":1,`}).Draw(t, "text")
				broken = append(append(append([]byte(nil), broken[:at]...), insert...), broken[at:]...)
			}
			readBoth[every](t, fast, broken)
		}
	})
}

func TestCodecReadsTheSame(t *testing.T) {
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	tooDeep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for _, in := range []string{
		`{}`, ` { } `, ``, `[]`, `null`, `{"sql":"a"} x`, `{"sql":"a"}{}`, `{"sql":null}`, `{"priority":1.5}`, `{"priority":1e2}`, `{"priority":-0}`,
		`{"priority":01}`, `{"priority":99999999999999999999}`, `{"slaSeconds":1e999}`, `{"slaSeconds":"1"}`, `{"tags":[1]}`, `{"tags":[]}`, `{"tags":null}`,
		`{"tags":["a",]}`, `{"tags":["a"],}`, `{,}`, `{"SQL":"x"}`, `{"sql":"x","sql":"y"}`, `{"zz":1,"zz":2}`, `{"s\u0071l":"x"}`, `{"sql":"\ud800"}`,
		`{"sql":"\u00e4\n\/"}`, "{\"sql\":\"\xff\"}", "{\"sql\":\"\\n\xff\"}", "{\"sql\":\"a\nb\"}", `{"sql":"\x"}`, `{"intent": {"a" : [ 1 ]} }`,
		`{"submittedAt":"2026-11-30T09:15:00.123456789+01:00"}`, `{"submittedAt":"2026-11-30"}`, `{"submittedAt":""}`, `{"session":{"id":"s","x":1}}`,
		`{"ſql":"x"}`, `{"\u212Aey":"x"}`, `{"commitTs":9223372036854775807}`, `{"commitTs":9223372036854775808}`, `{"deep":` + deep + `}`, `{"deep":` + tooDeep + `}`,
		`{"x":tru}`, `{"x":-}`, `{"x":1.}`, `{"x":1e}`, `{"x":"\u12"}`, `{"x" 1}`, `{"x":1 "y":2}`, `{x:1}`,
	} {
		readBoth[taskFields](t, plain, []byte(in))
	}
}

func TestPlansThatAreNone(t *testing.T) {
	type any1 struct{ V any }
	type bytes1 struct{ V []byte }
	type quoted struct {
		N int `json:"n,string"`
	}
	type twice struct {
		A int `json:"x"`
		B int `json:"X"`
	}
	for _, v := range []any{any1{}, bytes1{}, quoted{}, twice{}, struct{ V ownly }{}, struct{ V [2]int }{}, struct{ V map[int]int }{}, struct{ V uint8 }{}} {
		require.Nil(t, plain.planOf(reflect.TypeOf(v)), "%T", v)
		want, wantErr := encodeObject(v, nil)
		got, err := plain.Encode(v, nil)
		require.Equal(t, wantErr, err)
		require.Equal(t, string(want), string(got))
	}
	require.NotNil(t, plain.planOf(reflect.TypeFor[taskFields]()), "a Task has one")
	require.NotNil(t, fast.planOf(reflect.TypeFor[every]()))
	require.NotNil(t, fast.planOf(reflect.TypeFor[inner]()), "a type that holds itself")
	_, err := plain.Encode(func() {}, nil)
	require.Error(t, err)
}

// TestCodecDoesThePlainCases keeps the comparisons above from comparing encoding/json with itself.
func TestCodecDoesThePlainCases(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 15, 0, 5, time.UTC)
	v := every{
		Text: "ä\n\"<\u2028", Word: "w", Yes: true, N: -1, Small: 2, Large: new(int64(3)), F: 1e-9, G: new(0.5), At: at, Later: at, Ever: &at,
		Raw: json.RawMessage("[1]"), List: []string{"a"}, Always: []int{1}, Map: map[string]string{"b": "c"},
		Deep: map[Consistency]map[string]inner{"d": {"e": {A: "f"}}}, Inner: &inner{B: &inner{}}, Objects: []inner{{}}, Flat: Flat{"g", "h"},
		Task: &Task{SQL: "i", Extra: Extra{"zeta": json.RawMessage("1")}}, Own: ownly{1},
	}
	data, ok := fast.encode(&v, Extra{"eta": json.RawMessage("null")})
	require.True(t, ok)
	var back every
	s := scanner{data: data}
	extra, ok := fast.planOf(reflect.TypeFor[every]()).readObject(&s, reflect.ValueOf(&back).Elem(), 0)
	require.True(t, ok)
	require.Equal(t, Extra{"eta": json.RawMessage("null")}, extra)
	back.Extra = nil
	require.Equal(t, v, back)
}

func TestCodecKeepsWhatIsThere(t *testing.T) {
	v := taskFields{SQL: "kept", Tags: []string{"a"}}
	_, err := plain.Decode([]byte(`{"tenant":"t"}`), &v)
	require.NoError(t, err)
	require.Equal(t, taskFields{SQL: "kept", Tenant: "t", Tags: []string{"a"}}, v, "a field that is not in the object stays, as with encoding/json")
}

func FuzzDecodeTask(f *testing.F) {
	f.Add([]byte(`{"sql":"SELECT 1 WHERE a<b","tenant":"t","zeta":{"b":1},"slaSeconds":1.5,"session":{"id":"s"},"tags":["a"]}`))
	f.Add([]byte(`{"id":"\u00e4","submittedAt":"2026-11-30T09:15:00Z","commitTs":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) { readBoth[taskFields](t, plain, data) })
}

func BenchmarkTask(b *testing.B) {
	at := time.Date(2026, 11, 30, 9, 15, 0, 123e6, time.UTC)
	sla := 10.0
	task := Task{ID: "task-1", SQL: strings.Repeat("SELECT a,\n  b FROM t WHERE c < 'x'\n", 15), Tenant: "tenant_a", User: "u", SLASeconds: &sla, Tags: []string{"a", "b"}, SubmittedAt: &at}
	data, err := task.MarshalJSON()
	require.NoError(b, err)
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("read", func() error { var v taskFields; _, err := plain.Decode(data, &v); return err })
	run("read by encoding-json", func() error { var v taskFields; _, err := decodeObject(data, &v); return err })
	run("write", func() error { _, err := plain.Encode(taskFields(task), nil); return err })
	run("write by encoding-json", func() error { _, err := encodeObject(taskFields(task), nil); return err })
}
