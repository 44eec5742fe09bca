// Command pointsman-scaler keeps pools at zero until somebody needs them.
package main

import (
	"os"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/services/scaler"
)

func main() {
	os.Exit(config.Main(config.Program[scaler.Config]{Service: "scaler", Default: scaler.Default(), Run: scaler.Run}))
}
