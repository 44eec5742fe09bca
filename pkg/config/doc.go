// Package config loads a service's configuration from four layers, each over the one before: the defaults (a Go
// value), a YAML file, the environment and flags.
//
// A configuration is a plain struct. Every exported field has a `yaml:"name"` tag, and a `doc:"…"` tag that feeds
// the reference page. Types that can be fields: booleans, numbers, strings, time.Duration, time.Time, ByteSize,
// Secret, whatever reads and writes text (encoding.TextUnmarshaler and TextMarshaler), pointers to these for what
// may be missing, and lists, maps and structs of them. A struct that has `Validate() error` is asked; a struct in a
// list or map that has `SetDefaults()` gets its defaults that way.
//
// A key that nothing knows is an error, and errors name file, line and column. What a value means is left to the
// package that owns the struct.
package config
