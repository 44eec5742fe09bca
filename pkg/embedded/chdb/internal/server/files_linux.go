package server

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile makes an unnamed file in memory.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("pointsman-spool", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "spool"), nil
}

// diskFile makes an unnamed file on the disk that holds dir.
func diskFile(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), "spool"), nil
	}
	// Not every file system can: there, a name is given and taken away again.
	file, err := os.CreateTemp(dir, "spool-")
	if err != nil {
		return nil, fmt.Errorf("making a spool file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("making a spool file: %w", err), file.Close())
	}
	return file, nil
}

// filePath is where the engine, which lives in this process, can open a file that has no name.
// Opened by this path it has an offset and flags of its own.
func filePath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// widenPipe spares both sides of a pipe wake-ups. The default size does as well when it is refused.
func widenPipe(f *os.File) { _, _ = unix.FcntlInt(f.Fd(), unix.F_SETPIPE_SZ, 1<<20) }
