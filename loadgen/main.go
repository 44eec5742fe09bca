// Command loadgen makes the demo's data, and makes and publishes its workload.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pointsman/pointsman/loadgen/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
