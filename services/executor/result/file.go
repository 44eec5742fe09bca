package result

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
)

// syncEvery is after how many bytes what is written is put on the disk while more comes: a large result need not wait for all of
// it at its end.
const syncEvery = 64 << 20

// file is an unfinished result file. It belongs to one goroutine.
type file struct {
	f     *os.File
	fresh int64
	idle  chan struct{} // has a token while nothing is put on the disk
	err   error         // of putting it there, which the system tells once; for whoever has the token
}

func (s *Store) create() (*file, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.cfg.Folder, tempPrefix+hex.EncodeToString(b[:])), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, err
	}
	idle := make(chan struct{}, 1)
	idle <- struct{}{}
	return &file{f: f, idle: idle}, nil
}

// Write writes, and never waits for the disk.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.f.Write(p)
	f.fresh += int64(n)
	if f.fresh < syncEvery {
		return n, err
	}
	select {
	case <-f.idle:
		f.fresh = 0
		go func() {
			f.err = errors.Join(f.err, f.f.Sync())
			f.idle <- struct{}{}
		}()
	default: // the disk is slower than the engine; the end waits for it
	}
	return n, err
}

// publish gives a finished file its name. It is on the disk before an Outcome can name it. On an error nothing is left of it.
func (s *Store) publish(f *file, name string) error {
	<-f.idle
	err := errors.Join(f.err, f.f.Sync(), f.f.Close())
	if err == nil {
		err = os.Rename(f.f.Name(), filepath.Join(s.cfg.Folder, name))
	}
	if err != nil {
		_ = os.Remove(f.f.Name())
	}
	return err
}

// discard leaves nothing of the file.
func (f *file) discard() {
	<-f.idle
	_ = f.f.Close()
	_ = os.Remove(f.f.Name())
}
