package contracts

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/signal"
)

const draft = "https://json-schema.org/draft/2020-12/schema"

// node is a schema. Its fields are in the order in which people like to read them.
type node struct {
	Schema      string           `json:"$schema,omitempty"`
	ID          string           `json:"$id,omitempty"`
	Title       string           `json:"title,omitempty"`
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Type        any              `json:"type,omitempty"`
	Format      string           `json:"format,omitempty"`
	Examples    []string         `json:"examples,omitempty"`
	Items       *node            `json:"items,omitempty"`
	Additional  *node            `json:"additionalProperties,omitempty"`
	Properties  *properties      `json:"properties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	AnyOf       []*node          `json:"anyOf,omitempty"`
	Defs        map[string]*node `json:"$defs,omitempty"`
}

// properties keep the order of the Go fields.
type properties struct {
	names []string
	nodes map[string]*node
}

// MarshalJSON writes the properties in their order.
func (p *properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range p.names {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := marshal(p.nodes[name])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (p *properties) add(name string, n *node) {
	if p.nodes == nil {
		p.nodes = map[string]*node{}
	}
	if _, have := p.nodes[name]; !have {
		p.names = append(p.names, name)
	}
	p.nodes[name] = n
}

// Schema returns the JSON Schema of an event. It says what is there and of which type, and forbids nothing else: unknown fields and
// unknown values of enums are tomorrow's.
func Schema(e Event, c Comments) ([]byte, error) {
	g := generator{comments: c, defs: map[string]*node{}, from: map[string]reflect.Type{}}
	root, err := g.object(e.Go)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", e.Name, err)
	}
	root.Schema, root.ID, root.Title, root.Description = draft, e.Name+".json", e.Name, e.Summary
	root.Required = append(root.Required, e.Require...)
	for _, name := range e.AnyOf {
		root.AnyOf = append(root.AnyOf, &node{Required: []string{name}})
	}
	if len(g.defs) > 0 {
		root.Defs = g.defs
	}
	raw, err := marshal(root)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", e.Name, err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", e.Name, err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

type generator struct {
	comments Comments
	defs     map[string]*node
	from     map[string]reflect.Type // where each definition comes from
}

func (g generator) object(t reflect.Type) (*node, error) {
	n := &node{Type: "object", Description: g.comments.types[t.String()], Properties: &properties{}}
	return n, g.fields(t, n)
}

func (g generator) fields(t reflect.Type, n *node) error {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			if err := g.fields(f.Type, n); err != nil {
				return err
			}
			continue
		case name == "":
			return fmt.Errorf("%s.%s has no name in JSON", t, f.Name)
		}
		p, err := g.value(f.Type)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		if doc := g.comments.fields[t.String()][f.Name]; doc != "" {
			p.Description = doc
		}
		n.Properties.add(name, p)
		if !strings.Contains(options, "omit") {
			n.Required = append(n.Required, name)
		}
	}
	return nil
}

func (g generator) value(t reflect.Type) (*node, error) {
	switch {
	case t.Kind() == reflect.Pointer:
		return g.value(t.Elem())
	case t == reflect.TypeFor[time.Time]():
		return &node{Type: "string", Format: "date-time"}, nil
	case t == reflect.TypeFor[json.RawMessage]():
		return &node{}, nil
	case t == reflect.TypeFor[query.Extra]():
		return nil, fmt.Errorf("unknown fields can't be a field")
	case t == reflect.TypeFor[shape.Value]():
		return &node{Description: "A number, a string, a boolean, or a list of them."}, nil
	case t == reflect.TypeFor[signal.Seen]():
		return g.value(reflect.TypeFor[signal.Snapshot]())
	case t == reflect.TypeFor[signal.Number]():
		return &node{Type: []string{"number", "null"}, Description: "null is unknown, which is not zero."}, nil
	case t == reflect.TypeFor[signal.Value]():
		g.defs["Value"] = g.signalValue()
		return &node{Ref: "#/$defs/Value"}, nil
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &node{Type: "string"}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return &node{Type: "string", Examples: g.comments.values[t.String()]}, nil
	case reflect.Bool:
		return &node{Type: "boolean"}, nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return &node{Type: "integer"}, nil
	case reflect.Float64:
		return &node{Type: "number"}, nil
	case reflect.Slice:
		items, err := g.value(t.Elem())
		return &node{Type: "array", Items: items}, err
	case reflect.Map:
		items, err := g.value(t.Elem())
		return &node{Type: "object", Additional: items}, err
	case reflect.Struct:
		name := t.Name()
		if other, have := g.from[name]; have && other != t {
			return nil, fmt.Errorf("%s and %s would have the same name", t, other)
		} else if !have {
			g.from[name] = t // before its fields: a type may contain itself
			def, err := g.object(t)
			if err != nil {
				return nil, err
			}
			g.defs[name] = def
		}
		return &node{Ref: "#/$defs/" + name}, nil
	default:
		return nil, fmt.Errorf("no schema for a %s", t)
	}
}

// signalValue is written by hand, as the type writes its own JSON.
func (g generator) signalValue() *node {
	p := &properties{}
	p.add("state", &node{Type: "string", Examples: g.comments.values["signal.State"]})
	p.add("value", &node{Type: "number", Description: "There is none if the state is absent: absent is never zero."})
	p.add("unit", &node{Type: "string", Examples: g.comments.values["signal.Unit"]})
	p.add("source", &node{Type: "string"})
	p.add("at", &node{Type: "string", Format: "date-time"})
	return &node{
		Type:        []string{"object", "number", "null"},
		Description: g.comments.types["signal.Value"] + " A number alone is known, null is absent.", Properties: p, Required: []string{"state"},
	}
}
