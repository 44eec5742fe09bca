package migrate

import (
	"bytes"
	"io/fs"
	"strings"
)

// rendered is a file system whose files have their macros replaced as they are read.
type rendered struct {
	fs.FS
	macros *strings.Replacer
}

// Open reads a file and replaces its macros; folders are handed through.
func (r rendered) Open(name string) (fs.File, error) {
	f, err := r.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return f, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	data, err := fs.ReadFile(r.FS, name)
	if err != nil {
		return nil, err
	}
	text := r.macros.Replace(string(data))
	return &file{Reader: bytes.NewReader([]byte(text)), info: sized{info, int64(len(text))}}, nil
}

type file struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *file) Close() error { return nil }

type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }
