//go:build !linux

package process

import "syscall"

// attributes leave a server behind where the kernel has no such service and the test is killed.
func attributes(c *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: c}
}
