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
// to the revision that the client asked for, with the client's own codec.
func reframe(w io.Writer, r io.Reader, revision uint64) error {
	reader := chproto.NewReader(bufio.NewReaderSize(r, 1<<20))
	buffer := new(chproto.Buffer)
	for {
		block := proto.NewBlock()
		if err := block.Decode(reader, 0); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("reading a Native block of the engine: %w", err)
		}
		buffer.Reset()
		if err := encodeBlock(buffer, block, revision); err != nil {
			return fmt.Errorf("writing a Native block for revision %d: %w", revision, err)
		}
		if _, err := w.Write(buffer.Buf); err != nil {
			return err
		}
	}
}

// encodeBlock is Block.Encode, except that a block without rows carries no column state, which is
// how the decoder reads it.
func encodeBlock(buffer *chproto.Buffer, block *proto.Block, revision uint64) error {
	if block.Rows() > 0 {
		return block.Encode(buffer, revision)
	}
	if err := block.EncodeHeader(buffer, revision); err != nil {
		return err
	}
	for _, c := range block.Columns {
		encodeEmpty(buffer, c, revision)
	}
	return nil
}

func encodeEmpty(buffer *chproto.Buffer, c column.Interface, revision uint64) {
	buffer.PutString(c.Name())
	buffer.PutString(string(c.Type()))
	if revision >= proto.DBMS_MIN_REVISION_WITH_CUSTOM_SERIALIZATION {
		buffer.PutBool(false)
	}
}
