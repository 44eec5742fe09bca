//go:build !linux

package testkit

import "syscall"

// tieToParent does nothing where the kernel has no such service: a test that is killed leaves its services behind.
func tieToParent(*syscall.SysProcAttr) {}
