package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

// Options name the layers. The zero Options loads nothing but the defaults.
type Options struct {
	Service string   // "router": the variables are POINTSMAN_ROUTER_…
	File    string   // YAML; empty for none
	Environ []string // "KEY=value", as os.Environ gives it; nil for none
	Set     []string // "key=value", as the flag -set gives it
}

// Loaded is a configuration, and where its values came from.
type Loaded[T any] struct {
	Config   T
	Origins  map[string]Origin // by dotted key; a key that is not in it has its default
	Warnings []string          // variables with the prefix of the service that name no key
}

// Load lays file, environment and flags over the defaults, and validates the result. The error joins every *Problem
// that was found.
func Load[T any](def T, opts Options) (*Loaded[T], error) {
	t := reflect.TypeFor[T]()
	l := &layers{t: t, tree: koanf.New(delimiter), origins: map[string]Origin{}}
	defaults, _ := toTree(reflect.ValueOf(def)).(map[string]any)
	l.merge(defaults)
	l.file(opts.File)
	warnings := l.environment(opts.Service, opts.Environ)
	l.set(opts.Set)
	if len(l.errs) > 0 {
		return nil, errors.Join(l.errs...)
	}
	loaded := &Loaded[T]{Config: def, Origins: l.origins, Warnings: warnings}
	if err := l.decode(&loaded.Config); err != nil {
		return nil, err
	}
	if err := validate(reflect.ValueOf(&loaded.Config), l.origins); err != nil {
		return nil, err
	}
	return loaded, nil
}

// delimiter separates the keys of koanf's paths. It is no dot, since the keys of maps may have dots.
const delimiter = "\x1f"

type layers struct {
	t       reflect.Type
	tree    *koanf.Koanf
	origins map[string]Origin
	errs    []error
}

func (l *layers) merge(tree map[string]any) {
	// An empty delimiter says that the tree is nested already.
	if err := l.tree.Load(confmap.Provider(tree, ""), nil); err != nil {
		l.errs = append(l.errs, fmt.Errorf("merging: %w", err))
	}
}

// take keeps what a reader has found.
func (l *layers) take(r *reader, value any) {
	l.errs = append(l.errs, r.errs...)
	maps.Copy(l.origins, r.origins)
	if tree, ok := value.(map[string]any); ok {
		l.merge(tree)
	}
}

func (l *layers) file(name string) {
	if name == "" {
		return
	}
	data, err := os.ReadFile(filepath.Clean(name))
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("reading the configuration: %w", err))
		return
	}
	r := newReader(name, true)
	if err := l.tree.Load(rawbytes.Provider(data), fileParser{r, l.t}); err != nil {
		l.errs = append(l.errs, fmt.Errorf("merging %s: %w", name, err))
	}
	l.take(r, nil)
}

// fileParser is the reader as koanf wants it. The problems stay with the reader, since koanf knows only one error.
type fileParser struct {
	r *reader
	t reflect.Type
}

func (p fileParser) Unmarshal(data []byte) (map[string]any, error) {
	tree, _ := p.r.document(data, p.t, "").(map[string]any)
	return tree, nil
}

func (p fileParser) Marshal(map[string]any) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

func (l *layers) decode(out any) error {
	tree := l.tree.Raw()
	fillElements(tree, l.t)
	// Everything in the tree was checked when it was read, so an error here is a mistake in this package.
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:      out,
		TagName:     "yaml",
		DecodeHook:  decodeHook,
		ErrorUnused: true,
		ZeroFields:  true, // or a shorter list would keep the tail of the default's, and share its memory
		MatchName:   func(key, field string) bool { return key == field },
	})
	if err == nil {
		err = decoder.Decode(tree)
	}
	if err != nil {
		return fmt.Errorf("decoding the configuration: %w", err)
	}
	return nil
}
