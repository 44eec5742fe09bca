//go:build !linux

package main

import "errors"

// family needs /proc.
func family(int) (map[string]float64, error) {
	return nil, errors.New("memory can be measured on Linux only")
}
