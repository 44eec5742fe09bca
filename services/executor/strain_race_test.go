//go:build race

package executor_test

// strain is how many times longer everything takes under the race detector. Sessions and guards are as many times longer, so that a
// process that is only slow is not taken for one that stands still.
const strain = 5
