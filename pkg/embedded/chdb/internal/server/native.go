package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// reframe copies Native blocks from r to w, from revision 0, which is all that the library writes,
// to the revision that the client asked for. The two differ in what stands before a block and behind
// a column's type; the data of the columns pass as they are. The client's own codec is used to find
// where a column ends, not to write it again: it can't write every type that it can read.
// One thing is lost: at revision 0 the engine writes DateTime('Asia/Tokyo') as DateTime, so a client
// shows such a column in UTC. The instants are right, and DateTime64 keeps its zone.
func reframe(w io.Writer, r io.Reader, revision uint64) error {
	n := newNativeReader(r)
	var out chproto.Buffer
	for {
		out.Reset()
		err := n.block(&out, revision)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(out.Buf); err != nil {
			return err
		}
	}
}

// nativeReader reads blocks and remembers the bytes of the column that it is at.
type nativeReader struct {
	reader   *chproto.Reader
	buffered *bufio.Reader
	seen     *recorder
}

// nativeBuffer must not be smaller than the codec's own buffer, or that puts a second one in between.
const nativeBuffer = 128 << 10

func newNativeReader(r io.Reader) *nativeReader {
	seen := &recorder{r: r}
	buffered := bufio.NewReaderSize(seen, nativeBuffer)
	return &nativeReader{reader: chproto.NewReader(buffered), buffered: buffered, seen: seen}
}

// block reads one block at revision 0 and writes it at another; io.EOF is the end of the stream.
func (n *nativeReader) block(out *chproto.Buffer, revision uint64) error {
	columns, err := n.reader.UVarInt()
	if err != nil {
		return err
	}
	rows, err := n.reader.UVarInt()
	if err != nil {
		return unexpected(err)
	}
	// The codec writes what stands before a block, for one without columns…
	if err := proto.NewBlock().EncodeHeader(out, revision); err != nil {
		return err
	}
	// … whose two counts, of a byte each, are then replaced.
	out.Buf = out.Buf[:len(out.Buf)-2]
	out.PutUVarInt(columns)
	out.PutUVarInt(rows)
	for range columns {
		if err := n.column(out, int(rows), revision); err != nil {
			return err
		}
	}
	return nil
}

func (n *nativeReader) column(out *chproto.Buffer, rows int, revision uint64) error {
	name, err := n.reader.Str()
	if err != nil {
		return unexpected(err)
	}
	typ, err := n.reader.Str()
	if err != nil {
		return unexpected(err)
	}
	out.PutString(name)
	out.PutString(typ)
	if revision >= proto.DBMS_MIN_REVISION_WITH_CUSTOM_SERIALIZATION {
		out.PutBool(false)
	}
	// A block without rows carries no data of its columns, not even their state.
	if rows == 0 {
		return nil
	}
	col, err := column.Type(typ).Column(name, &column.ServerContext{})
	if err != nil {
		return exception(50, "UNKNOWN_TYPE", "Column %s of type %s can't be sent in Native to a client of this protocol version, ask for another FORMAT: %v", name, typ, err)
	}
	n.seen.drop(n.buffered.Buffered())
	if prefixed, ok := col.(column.CustomSerialization); ok {
		if err := prefixed.ReadStatePrefix(n.reader); err != nil {
			return fmt.Errorf("reading column %s of type %s: %w", name, typ, unexpected(err))
		}
	}
	if err := col.Decode(n.reader, rows); err != nil {
		return fmt.Errorf("reading column %s of type %s: %w", name, typ, unexpected(err))
	}
	out.PutRaw(n.seen.until(n.buffered.Buffered()))
	return nil
}

// unexpected makes the end of the stream within a block an error of its own.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// recorder keeps the bytes that have been read from r since the last drop.
type recorder struct {
	r    io.Reader
	kept []byte
}

// Read reads and remembers.
func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.kept = append(r.kept, p[:n]...)
	return n, err
}

// drop forgets all but the last n bytes.
func (r *recorder) drop(n int) {
	r.kept = append(r.kept[:0], r.kept[len(r.kept)-n:]...)
}

// until gives what is kept, without the last n bytes.
func (r *recorder) until(n int) []byte { return r.kept[:len(r.kept)-n] }
