package server

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolMemory is how much of a spool is held in memory before it moves to a file.
const spoolMemory = 32 << 20

// spool is an unnamed file that grows from memory to disk. It disappears with its last descriptor,
// whatever happens to the process.
type spool struct {
	file   *os.File
	dir    string
	size   int64
	onDisk bool
}

func newSpool(dir string) (*spool, error) {
	file, err := memoryFile()
	if err != nil {
		return nil, err
	}
	return &spool{file: file, dir: dir}, nil
}

// Write appends to the spool.
func (s *spool) Write(p []byte) (int, error) {
	if !s.onDisk && s.size+int64(len(p)) > spoolMemory {
		if err := s.toDisk(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	return n, err
}

func (s *spool) toDisk() error {
	file, err := diskFile(s.dir)
	if err != nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return errors.Join(err, file.Close())
	}
	if _, err := io.Copy(file, s.file); err != nil {
		return errors.Join(fmt.Errorf("moving a spool to disk: %w", err), file.Close())
	}
	err = s.file.Close()
	s.file, s.onDisk = file, true
	return err
}

// Path is where the engine can open the spool.
func (s *spool) Path() string { return filePath(s.file) }

// Reader rewinds the spool for reading.
func (s *spool) Reader() (io.Reader, error) {
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

// Close lets go of the spool.
func (s *spool) Close() error { return s.file.Close() }
