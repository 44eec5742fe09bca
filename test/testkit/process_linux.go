package testkit

import "syscall"

// tieToParent has the kernel kill a service when the test's process ends, even by a timeout's panic or SIGKILL.
func tieToParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
