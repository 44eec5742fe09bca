package process

import "syscall"

// attributes have the kernel kill a server when the test's process ends, however it ends.
func attributes(c *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: c}
}
