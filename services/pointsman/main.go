// Command pointsman runs everything on embedded parts, and is the tool of operators: topics, migrations, policies, decisions.
package main

import (
	"os"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
	"github.com/pointsman/pointsman/services/pointsman/command"
)

func main() {
	chdb.MaybeRunChild() // an embedded engine is this binary again
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
