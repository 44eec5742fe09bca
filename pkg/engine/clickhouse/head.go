package clickhouse

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ClickHouse/ch-go/compress"

	"github.com/pointsman/pointsman/pkg/engine"
)

const (
	// mostFrame is more than the first compressed frame of an answer has.
	mostFrame = 64 << 20
	// frameHeader is a frame's checksum, method, and its two sizes.
	frameHeader = 16 + 1 + 4 + 4
)

// headed looks at the head of an answer before the driver does: the driver makes room for as many columns as the server announces, whatever that
// is. Over the native protocol there is nothing to be seen here.
type headed struct {
	io.ReadCloser
	from   io.Reader // once the head was looked at
	failed error
}

// Read reads.
func (h *headed) Read(p []byte) (int, error) {
	if h.from == nil && h.failed == nil {
		h.look()
	}
	if h.failed != nil {
		return 0, h.failed
	}
	return h.from.Read(p)
}

// look reads the first frame. What is not as it should be is left to the driver, which checks it.
func (h *headed) look() {
	frame := make([]byte, frameHeader)
	n, err := io.ReadFull(h.ReadCloser, frame)
	size := 0
	if err == nil {
		size = int(binary.LittleEndian.Uint32(frame[17:])) - (frameHeader - 16)
	}
	if err == nil && size > 0 && size <= mostFrame {
		frame = slices.Concat(frame, make([]byte, size))
		var more int
		more, err = io.ReadFull(h.ReadCloser, frame[n:])
		n += more
	}
	h.from = io.MultiReader(bytes.NewReader(frame[:n]), h.ReadCloser)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		h.failed = err
		return
	}
	if count, ok := columnsOf(frame[:n]); ok && count > engine.MostColumns {
		h.failed = fmt.Errorf("%w: %d", engine.ErrColumns, count)
	}
}

// blockInfo stands in front of the count of columns, in answers to clients that name their protocol's version.
var blockInfo = []byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}

// columnsOf is the number of columns that a first frame announces.
func columnsOf(frame []byte) (uint64, bool) {
	head := make([]byte, len(blockInfo)+binary.MaxVarintLen64)
	n, _ := io.ReadFull(compress.NewReader(bytes.NewReader(frame)), head)
	count, read := binary.Uvarint(bytes.TrimPrefix(head[:n], blockInfo))
	return count, read > 0
}
