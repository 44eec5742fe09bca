package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted stands for a secret wherever it is printed.
const Redacted = "[redacted]"

// Secret is a password, token or key. Everything that prints it prints Redacted, or nothing if it is empty, so that
// "not set" stays visible; only Reveal gives the text.
type Secret string

// Reveal returns the secret itself, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Redacted
}

// Format hides the secret from every verb of fmt: without it %d or %x would print the text as a complaint.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' {
		fmt.Fprintf(f, "%q", s.String())
		return
	}
	_, _ = io.WriteString(f, s.String())
}

// MarshalText hides the secret from encoders, among them those of JSON and of map keys.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML hides the secret from YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
