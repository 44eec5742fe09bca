package chdb

// Library is the engine's library as this version of pointsman wants it.
const (
	libraryVersion = "26.7.3-stable.1"
	// libraryEnv names a library to use instead of fetching one.
	libraryEnv = "CHDB_LIB_PATH"
)

// build is one published build of the library.
type build struct {
	pkg           string // npm package
	tarballBytes  int64
	tarballSHA512 string // base64, as npm writes it
	libraryBytes  int64
	librarySHA256 string // hex
}

// builds are the builds by GOOS/GOARCH. The publisher has no arm64 build of this version.
var builds = map[string]build{
	"linux/amd64": {
		pkg:           "@chdb/lib-linux-x64-gnu",
		tarballBytes:  177817999,
		tarballSHA512: "XP97mMqnc5tZpKQywR8N7cLTsHNiTmHr30pC5mzo3jWmukjKn2IBa60c2B/gWUNcuFjOMjWoorQICCqBVj5wpw==",
		libraryBytes:  566330096,
		librarySHA256: "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5",
	},
}
