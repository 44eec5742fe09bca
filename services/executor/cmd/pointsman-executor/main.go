// Command pointsman-executor runs the executor in a process of its own.
package main

import (
	"os"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/services/executor"
)

func main() {
	os.Exit(config.Main(config.Program[executor.Config]{Service: "executor", Default: executor.Default(), Follow: executor.Run}))
}
