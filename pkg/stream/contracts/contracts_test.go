package contracts_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/stream/contracts"
	"github.com/pointsman/pointsman/pkg/stream/topicadmin"
	"github.com/pointsman/pointsman/topics"
)

var update = flag.Bool("update", false, "write the generated files")

const root = "../../.."

func TestGeneratedFiles(t *testing.T) {
	comments, err := contracts.ReadComments(os.DirFS(root))
	require.NoError(t, err)
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	want := map[string][]byte{}
	want["asyncapi.yaml"], err = contracts.AsyncAPI(specs, contracts.Events())
	require.NoError(t, err)
	for _, e := range contracts.Events() {
		want["schema/"+e.Name+".json"], err = contracts.Schema(e, comments)
		require.NoError(t, err)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		file := filepath.Join(root, "topics", name)
		if *update {
			require.NoError(t, os.WriteFile(file, want[name], 0o644))
			continue
		}
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(string(want[name]), string(have)), "topics/%s is not up to date: go generate ./topics", name)
	}
	have, err := fs.Glob(os.DirFS(filepath.Join(root, "topics")), "schema/*")
	require.NoError(t, err)
	for _, name := range have {
		require.NotNil(t, want[name], "%s is the schema of nothing", name)
	}
}

// eventOf finds the payload type of a sample, by its file name <type>--<case>.json.
func eventOf(t *testing.T, file string) contracts.Event {
	name, _, ok := strings.Cut(filepath.Base(file), "--")
	require.True(t, ok, "%s: want <type>--<case>.json", file)
	if strings.HasPrefix(name, "pointsman.attempt.") {
		name = contracts.AttemptEvents
	}
	for _, e := range contracts.Events() {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("%s: no event %q", file, name)
	return contracts.Event{}
}

func schema(t *testing.T, name string) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	data, err := fs.ReadFile(topics.FS, "schema/"+name+".json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	require.NoError(t, c.AddResource(name+".json", doc))
	s, err := c.Compile(name + ".json")
	require.NoError(t, err)
	return s
}

func number(t *testing.T, data []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// short writes values the way they are written today: a known number that has nothing else to it is the number, and an absent one
// may be left out.
func short(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = short(v[i])
		}
	case map[string]any:
		if n, ok := v["value"]; ok && len(v) == 2 && v["state"] == "known" {
			return n
		}
		for key, value := range v {
			if v[key] = short(value); cmp.Equal(v[key], any(map[string]any{"state": "absent"})) {
				delete(v, key)
			}
		}
	}
	return v
}

// The samples are what was once written. They decode for ever, and whatever this version does not know survives a round trip.
func TestSamplesDecodeForEver(t *testing.T) {
	files, err := fs.Glob(topics.FS, "samples/v1/*.json")
	require.NoError(t, err)
	seen := map[string]int{}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := fs.ReadFile(topics.FS, file)
			require.NoError(t, err)
			e := eventOf(t, file)
			seen[e.Name]++
			require.NoError(t, schema(t, e.Name).Validate(number(t, data)), "the schema refuses it")

			v := reflect.New(e.Go)
			require.NoError(t, json.Unmarshal(data, v.Interface()))
			if e.Go == reflect.TypeFor[ledger.Record]() {
				_, err := ledger.Decode(data) // nobody passes these on
				require.NoError(t, err)
				return
			}
			out, err := json.Marshal(v.Interface())
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(short(number(t, data)), short(number(t, out))), "lost in a round trip")
			require.NoError(t, schema(t, e.Name).Validate(number(t, out)))
		})
	}
	for _, e := range contracts.Events() {
		require.GreaterOrEqual(t, seen[e.Name], 1, "no sample of %s", e.Name)
	}
}

func TestSchemasRefuse(t *testing.T) {
	for name, c := range map[string]struct{ event, value string }{
		"no sql and no intent":  {"pointsman.query.requested.v1", `{"tenant":"a"}`},
		"no tenant":             {"pointsman.query.requested.v1", `{"sql":"SELECT 1"}`},
		"sql that is no text":   {"pointsman.query.requested.v1", `{"tenant":"a","sql":7}`},
		"not an object":         {"pointsman.query.requested.v1", `[]`},
		"an end without a time": {"pointsman.task.ended.v1", `{"taskId":"t","status":"succeeded"}`},
		"a time that is none":   {"pointsman.cluster.observed.v1", `{"cluster":"c","source":"s","at":"now","values":{}}`},
		"a value without state": {"pointsman.cluster.observed.v1", `{"cluster":"c","source":"s","at":"2026-01-01T00:00:00Z","values":{"queued":{"value":1}}}`},
		"a rejection that says nothing": {
			"pointsman.decision.rejected.v1",
			`{"decisionId":"t/1","taskId":"t","attempt":1,"kind":"reject","decidedAt":"2026-01-01T00:00:00Z","deadline":"2026-01-01T00:00:00Z","engine":"","cluster":""}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, schema(t, c.event).Validate(number(t, []byte(c.value))))
		})
	}
}

// Every reference in the AsyncAPI document leads somewhere, and every topic and event is in it.
func TestAsyncAPIHoldsTogether(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "topics/asyncapi.yaml"))
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal(data, &doc))
	refs := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if to, ok := v["$ref"].(string); ok {
				refs++
				require.True(t, resolves(doc, to), to)
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(doc)
	require.Greater(t, refs, 20)
	specs, err := topicadmin.Specs()
	require.NoError(t, err)
	require.Len(t, doc["channels"], len(specs))
	require.Len(t, doc["operations"], 2*len(specs))
}

func resolves(doc map[string]any, to string) bool {
	if file, ok := strings.CutPrefix(to, "./"); ok {
		_, err := fs.Stat(topics.FS, file)
		return err == nil
	}
	var at any = doc
	for part := range strings.SplitSeq(strings.TrimPrefix(to, "#/"), "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if at, ok = m[part]; !ok {
			return false
		}
	}
	return true
}
