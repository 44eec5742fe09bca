//go:build !linux

package kafka

import "syscall"

// dieWithParent is empty where the kernel has no such service: a test that is killed leaves its brokers behind.
var dieWithParent = &syscall.SysProcAttr{}
