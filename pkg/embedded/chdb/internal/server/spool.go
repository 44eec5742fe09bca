package server

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// spoolMemory is how much of a spool is held in memory before it moves to a file.
const spoolMemory = 32 << 20

// spool is an unnamed file that grows from memory to disk. It disappears with its last descriptor,
// whatever happens to the process.
type spool struct {
	file   *os.File
	dir    string
	size   int64
	inFile bool
}

func newSpool(dir string) (*spool, error) {
	fd, err := unix.MemfdCreate("pointsman-spool", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a spool: %w", err)
	}
	return &spool{file: os.NewFile(uintptr(fd), "spool"), dir: dir}, nil
}

// Write appends to the spool.
func (s *spool) Write(p []byte) (int, error) {
	if !s.inFile && s.size+int64(len(p)) > spoolMemory {
		if err := s.toFile(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, err
}

func (s *spool) toFile() error {
	fd, err := unix.Open(s.dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("making a spool file in %s: %w", s.dir, err)
	}
	file := os.NewFile(uintptr(fd), "spool")
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return errors.Join(err, file.Close())
	}
	if _, err := io.Copy(file, s.file); err != nil {
		return errors.Join(fmt.Errorf("moving a spool to a file: %w", err), file.Close())
	}
	err = s.file.Close()
	s.file, s.inFile = file, true
	return err
}

// Path is where the engine, which lives in this process, can open the spool.
func (s *spool) Path() string { return fmt.Sprintf("/proc/self/fd/%d", s.file.Fd()) }

// Reader rewinds the spool for reading.
func (s *spool) Reader() (io.Reader, error) {
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

func (s *spool) Close() error { return s.file.Close() }
