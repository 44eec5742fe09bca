// Command pointsman-intake is the HTTP front door of pointsman.
package main

import (
	"os"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/services/intake"
)

func main() {
	os.Exit(config.Main(config.Program[intake.Config]{Service: "intake", Default: intake.Default(), Run: intake.Run}))
}
