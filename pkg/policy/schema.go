package policy

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
)

// Schema returns the JSON Schema of a policy, for editors. It is made from the tables that policies are read by. What it can't
// say, such as that a name is declared, only Load finds.
func Schema() []byte {
	root := schemaOf(describe(sections))
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "pointsman routing policy"
	thresholds := schemaOf(describe(thresholdOptions))
	thresholds["additionalProperties"] = schemaOf(describe(namedOptions))
	overrides := schemaOf(describe(thresholdOptions))
	overrides["additionalProperties"] = amountSchema()
	root["$defs"] = map[string]any{
		"condition":  conditionSchema(),
		"number":     settled(valueSchema(NumberKind)),
		"flag":       settled(valueSchema(BoolKind)),
		"words":      settled(valueSchema(WordsKind)),
		"defaults":   schemaOf(describe(defaultOptions)),
		"thresholds": thresholds,
		"overrides":  overrides,
		"rules":      map[string]any{"type": "array", "items": schemaOf(describe(ruleOptions))},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(root) // maps, lists, texts and numbers: it can't fail
	return out.Bytes()
}

// settled is a test's value, alone or with what a missing fact means.
func settled(value map[string]any) map[string]any {
	test := schemaOf(describe(testOptions))
	test["properties"].(map[string]any)["value"] = value
	return map[string]any{"anyOf": []any{value, test}}
}

// testOf refers to the schema of tests of a kind of fact.
func testOf(kind Kind, about string) map[string]any {
	name := map[Kind]string{NumberKind: "number", BoolKind: "flag", WordKind: "words", WordsKind: "words"}[kind]
	out := map[string]any{"$ref": "#/$defs/" + name}
	if about != "" {
		out["description"] = about
	}
	return out
}

func valueSchema(kind Kind) map[string]any {
	switch kind {
	case NumberKind:
		return edgeForm().schema
	case BoolKind:
		return map[string]any{"type": "boolean"}
	default:
		s := wordsSchema()
		s["anyOf"].([]any)[1].(map[string]any)["minItems"] = 1
		return s
	}
}

func conditionSchema() map[string]any {
	self := map[string]any{"$ref": "#/$defs/condition"}
	list := func(about string) map[string]any {
		return map[string]any{"type": "array", "minItems": 1, "items": self, "description": about}
	}
	properties := map[string]any{
		"any_of": list("At least one of these holds."),
		"all_of": list("All of these hold."),
		"not":    map[string]any{"$ref": "#/$defs/condition", "description": "This does not hold."},
		"expr":   settled(map[string]any{"type": "string", "maxLength": maxExpression}),
	}
	properties["expr"].(map[string]any)["description"] = "A CEL expression over the facts that is true or false."
	known := map[string]any{"type": "boolean"}
	for _, s := range TaskFacts {
		properties[s.Name] = testOf(s.Kind, s.About)
		properties[s.Name+"_"+string(IsKnown)] = known
		if s.Kind == NumberKind {
			for _, op := range numberOps {
				properties[s.Name+"_"+string(op)] = testOf(s.Kind, "")
			}
		}
	}
	patterns := map[string]any{}
	pool := strings.TrimSuffix(poolPattern, "$") + "_"
	for _, s := range PoolFacts {
		suffix := "$"
		if s.Kind == NumberKind {
			suffix = "(_(lt|lte|gt|gte))?$"
		}
		patterns[pool+s.Name+suffix] = testOf(s.Kind, s.About)
		patterns[pool+s.Name+"_"+string(IsKnown)+"$"] = known
	}
	// A name of the policy's own is a latch: true or false.
	latch := testOf(BoolKind, "")
	return map[string]any{
		"type": "object", "minProperties": 1, "properties": properties, "patternProperties": patterns, "additionalProperties": latch,
		"propertyNames": map[string]any{"pattern": poolPattern},
	}
}

var numberOps = []Op{Less, LessEqual, Greater, GreaterEqual}

// mappingForm is a mapping whose keys are options.
func mappingForm(name string, keys []described) form {
	return form{name: name, schema: schemaOf(keys)}
}

// schemaOf is the JSON Schema of a mapping with these keys and no others.
func schemaOf(keys []described) map[string]any {
	properties := make(map[string]any, len(keys))
	var required []string
	for _, k := range keys {
		p := maps.Clone(k.form.schema)
		if p == nil {
			p = map[string]any{}
		}
		p["description"] = k.about
		if k.form.def != "" {
			p["description"] = k.about + " Default: " + k.form.def + "."
		}
		properties[k.key] = p
		if k.form.required {
			required = append(required, k.key)
		}
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		out["required"] = required
	}
	return out
}

// named is the schema of a mapping with names of the policy's own as keys.
func named(pattern string, item map[string]any) map[string]any {
	out := map[string]any{"type": "object", "additionalProperties": item}
	if pattern != "" {
		out["propertyNames"] = map[string]any{"pattern": pattern}
	}
	return out
}
