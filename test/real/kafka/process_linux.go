package kafka

import "syscall"

// dieWithParent has the kernel kill a broker when the test's process ends, even by a timeout's panic or SIGKILL.
var dieWithParent = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
