// Package rows writes the rows of a result in the formats that a reader may ask for, and reads them back from the one in which
// they are kept.
//
// Values are those of the engine port (pkg/engine), its own or lent, or what a line of JSON gives: the same value is written the same way,
// wherever it came from, and from every engine. NULL is never an empty text; integers of 64 bits and more and decimals are never
// rounded; instants carry their zone. Where files lie, and who may read them, is not this package's.
package rows

import (
	"fmt"
	"io"

	"github.com/pointsman/pointsman/pkg/event"
)

// Format is how rows are written. The empty Format leaves the choice to whoever writes.
type Format string

// The formats.
const (
	// JSON is one array of rows, each of them an array; it is for small results.
	JSON Format = "json"
	// NDJSON is one array per line.
	NDJSON Format = "ndjson"
	// CSV is RFC 4180 with a line of names. NULL is nothing, and the empty text is "".
	CSV Format = "csv"
	// Arrow is the Arrow IPC stream format.
	Arrow Format = "arrow"
)

// The media types of the formats.
const (
	MediaJSON   = "application/json"
	MediaNDJSON = "application/x-ndjson"
	MediaCSV    = "text/csv"
	MediaArrow  = "application/vnd.apache.arrow.stream"
)

// Media is the media type of a format, or "".
func (f Format) Media() string {
	switch f {
	case JSON:
		return MediaJSON
	case NDJSON:
		return MediaNDJSON
	case CSV:
		return MediaCSV
	case Arrow:
		return MediaArrow
	default:
		return ""
	}
}

// FormatOf is the format of a media type, or "".
func FormatOf(media string) Format {
	for _, f := range []Format{JSON, NDJSON, CSV, Arrow} {
		if f.Media() == media {
			return f
		}
	}
	return ""
}

// Writer writes rows. It belongs to one goroutine.
type Writer interface {
	// Write takes a row with a value per column. It may be held back until Close; the values themselves are not kept.
	Write(row []any) error
	// Size is how many bytes have been written, about so for what is held back.
	Size() int64
	// Close writes what is held back and the end of the format. It does not close what is written to.
	Close() error
}

// NewWriter begins to write rows line by line or batch by batch: NDJSON, CSV or Arrow.
func NewWriter(f Format, w io.Writer, columns []event.Column) (Writer, error) {
	switch f {
	case NDJSON:
		return &lineWriter{pieces: pieces{w: w}, kinds: kindsOf(columns)}, nil
	case CSV:
		return newCSV(w, columns), nil
	case Arrow:
		return newArrow(w, columns), nil
	default:
		return nil, fmt.Errorf("rows can't be written one by one as %q", f)
	}
}

// pieceBytes is how much is gathered before it is written.
const pieceBytes = 64 << 10

// pieces gathers what is written in pieces of a good size.
type pieces struct {
	w    io.Writer
	held []byte
	size int64 // of what was written
}

// rowDone writes what has been gathered if it is enough.
func (p *pieces) rowDone() error {
	if len(p.held) < pieceBytes {
		return nil
	}
	return p.Close()
}

// Size is exact.
func (p *pieces) Size() int64 { return p.size + int64(len(p.held)) }

// Close writes what is held back.
func (p *pieces) Close() error {
	n, err := p.w.Write(p.held)
	p.size += int64(n)
	p.held = p.held[:0]
	return err
}

// lineWriter writes NDJSON.
type lineWriter struct {
	pieces
	kinds kinds
}

// Write writes one line.
func (l *lineWriter) Write(row []any) (err error) {
	if l.held, err = l.kinds.appendLine(l.held, row); err != nil {
		return err
	}
	return l.rowDone()
}
