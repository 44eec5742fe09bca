package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/config"
)

func TestParseByteSize(t *testing.T) {
	for text, want := range map[string]config.ByteSize{
		"0": 0, "17": 17, "17 B": 17, "50 GB": 50_000_000_000, "1 MiB": 1 << 20, "1mib": 1 << 20, " 1.5 KiB ": 1536,
		"0.001 KB": 1, "8191 PiB": 8191 << 50, "9223372036854775807": math.MaxInt64,
	} {
		got, err := config.ParseByteSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"": "is no size", "GB": "is no size", "1 GB 2": "is no size", "-1": "is no size", "1e3": "is no size", "1.2.3": "is no size",
		".": "is no size", "1/2": "is no size", "5 gallons": `unknown unit "gallons"`, "5 G": `unknown unit "G"`,
		"0.5": "not a whole number of bytes", "8192 PiB": "more than 64 bits", "9223372036854775808": "more than 64 bits",
	} {
		_, err := config.ParseByteSize(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestByteSizeSurvivesItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := config.ByteSize(rapid.Int64Min(0).Draw(t, "size") << rapid.IntRange(0, 20).Draw(t, "shift") & math.MaxInt64)
		back, err := config.ParseByteSize(size.String())
		require.NoError(t, err)
		require.Equal(t, size, back)
	})
	require.Equal(t, "50 GB", (50 * config.GB).String())
	require.Equal(t, "1 MiB", config.MiB.String())
	require.Equal(t, "0 B", config.ByteSize(0).String())
}

type timed struct {
	Wait time.Duration `yaml:"wait"`
	At   time.Time     `yaml:"at"`
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour,
		"-1d12h": -36 * time.Hour, "0": 0, "1 h": time.Hour,
	} {
		got, err := config.Load(timed{}, config.Options{Set: []string{"wait=" + text}})
		require.NoError(t, err, text)
		require.Equal(t, want, got.Config.Wait, text)
	}
	for _, text := range []string{"", "d", "1.5d", "5", "1d5", "5 parsecs", "999999d"} {
		_, err := config.Load(timed{}, config.Options{Set: []string{"wait=" + text}})
		require.ErrorContains(t, err, "write for example", text)
	}
}

func TestDurationsSurviveTheirText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := timed{Wait: time.Duration(rapid.Int64().Draw(t, "wait")), At: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 5).UTC()}
		got, err := config.Load(def, config.Options{})
		require.NoError(t, err)
		require.Equal(t, def, got.Config)
	})
	var out strings.Builder
	loaded, err := config.Load(timed{Wait: time.Hour}, config.Options{})
	require.NoError(t, err)
	require.NoError(t, loaded.Print(&out))
	require.Contains(t, out.String(), "wait: 1h\n")
}

func TestTimesAreUTC(t *testing.T) {
	got, err := config.Load(timed{}, config.Options{Set: []string{"at=2026-11-30T08:30:00+01:00"}})
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 11, 30, 7, 30, 0, 0, time.UTC), got.Config.At)
}

func TestSecretIsNeverPrinted(t *testing.T) {
	const hidden = "hunter2"
	s := config.Secret(hidden)
	holder := struct {
		Password config.Secret `json:"password" yaml:"password"`
		Deep     map[string]*config.Secret
	}{s, map[string]*config.Secret{"x": &s}}
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%5.2f"} {
		fmt.Fprintf(&printed, verb+verb+verb, s, holder, []config.Secret{s})
	}
	fmt.Fprint(&printed, s, holder)
	asJSON, err := json.Marshal(holder)
	require.NoError(t, err)
	asYAML, err := yaml.Marshal(holder)
	require.NoError(t, err)
	printed.Write(asJSON)
	printed.Write(asYAML)
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&printed, nil), slog.NewTextHandler(&printed, nil)} {
		slog.New(handler).Info("starting", "password", s, "config", holder)
	}
	require.NotContains(t, printed.String(), hidden)
	require.NotContains(t, strings.ToLower(printed.String()), fmt.Sprintf("%x", hidden))
	require.Contains(t, printed.String(), config.Redacted)
	require.Equal(t, hidden, s.Reveal())
	require.Empty(t, config.Secret("").String(), "not set stays visible")
}
