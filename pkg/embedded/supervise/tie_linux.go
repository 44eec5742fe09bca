package supervise

import "syscall"

// tieToParent makes the kernel kill the process when the parent dies, however it dies.
func tieToParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
