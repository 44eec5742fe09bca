// Package buildinfo says which build of pointsman this is. It reads what the Go toolchain and the linker left in the
// binary, and nothing else.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version is set by the linker: -ldflags "-X github.com/pointsman/pointsman/pkg/telemetry/buildinfo.version=v1.2.3".
var version string

// Info identifies a build. A field that the build does not carry is empty.
type Info struct {
	Version  string `json:"version"`  // of the release, "devel" when it is none
	Revision string `json:"revision"` // commit
	Time     string `json:"time"`     // of the commit, RFC 3339
	Modified bool   `json:"modified"` // built from a tree with uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns what is known of the running binary.
func Read() Info {
	build, _ := debug.ReadBuildInfo()
	return from(version, build)
}

func from(linked string, build *debug.BuildInfo) Info {
	info := Info{Version: linked, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if build != nil {
		if info.Version == "" && build.Main.Version != "(devel)" {
			info.Version = build.Main.Version // set for `go install module@version`
		}
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				info.Revision = s.Value
			case "vcs.time":
				info.Time = s.Value
			case "vcs.modified":
				info.Modified = s.Value == "true"
			}
		}
	}
	if info.Version == "" {
		info.Version = "devel"
	}
	return info
}

// String is one line for people.
func (i Info) String() string {
	var b strings.Builder
	b.WriteString(i.Version)
	if i.Revision != "" {
		fmt.Fprintf(&b, " (%.12s", i.Revision)
		if i.Modified {
			b.WriteString(", modified")
		}
		b.WriteString(")")
	}
	fmt.Fprintf(&b, " %s %s", i.Go, i.Platform)
	return b.String()
}
