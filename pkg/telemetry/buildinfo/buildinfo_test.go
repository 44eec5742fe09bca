package buildinfo

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrom(t *testing.T) {
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"},
		{Key: "vcs.time", Value: "2026-11-30T07:00:00Z"},
		{Key: "vcs.modified", Value: "true"},
	}
	suffix := " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for name, c := range map[string]struct {
		linked string
		build  *debug.BuildInfo
		want   string
	}{
		"nothing known":   {"", nil, "devel"},
		"linked":          {"v1.2.3", &debug.BuildInfo{Main: debug.Module{Version: "v9"}}, "v1.2.3"},
		"go install":      {"", &debug.BuildInfo{Main: debug.Module{Version: "v1.0.0"}}, "v1.0.0"},
		"checkout":        {"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: vcs}, "devel (0123456789ab, modified)"},
		"linked checkout": {"v2", &debug.BuildInfo{Settings: vcs[:1]}, "v2 (0123456789ab)"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want+suffix, from(c.linked, c.build).String())
		})
	}
}

func TestReadKnowsTheToolchain(t *testing.T) {
	require.Equal(t, runtime.Version(), Read().Go)
	require.NotEmpty(t, Read().Version)
}
