//go:build !linux

package server

import (
	"errors"
	"os"
)

// The engine opens rows and results by the paths that Linux gives to open descriptors. Package chdb
// refuses to start an engine elsewhere; these let programs that only might start one be built.

func memoryFile() (*os.File, error) { return nil, errors.ErrUnsupported }

func diskFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func filePath(*os.File) string { return "" }

func widenPipe(*os.File) {}
