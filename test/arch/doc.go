// Package arch checks what the compiler does not: which package may import which, and that the core reads no clock
// and no global randomness.
//
// layers.go is the table, and the only file to change when a package is added. The other files read the tree: its
// imports from `go list -deps -json ./...`, its sources with go/ast.
package arch
