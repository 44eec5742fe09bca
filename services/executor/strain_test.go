//go:build !race

package executor_test

// strain is how many times longer everything takes: see strain_race_test.go.
const strain = 1
