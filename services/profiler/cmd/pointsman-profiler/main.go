// Command pointsman-profiler writes every event to the history and publishes what it sees of the clusters.
package main

import (
	"os"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/services/profiler"
)

func main() {
	os.Exit(config.Main(config.Program[profiler.Config]{Service: "profiler", Default: profiler.Default(), Run: profiler.Run}))
}
