//go:build !linux

package supervise

import "syscall"

// tieToParent does nothing: elsewhere the end of its standard input is what tells a child that its
// parent has died.
func tieToParent(*syscall.SysProcAttr) {}
