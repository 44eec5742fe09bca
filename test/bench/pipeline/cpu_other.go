//go:build !unix

package main

import "time"

// processorTime is unknown.
func processorTime() time.Duration { return 0 }
