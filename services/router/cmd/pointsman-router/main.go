// Command pointsman-router decides where queries go. See -help.
package main

import (
	"os"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/services/router"
)

func main() {
	os.Exit(config.Main(config.Program[router.Config]{Service: "router", Default: router.Default(), Run: router.Run}))
}
