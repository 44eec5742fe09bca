package server

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
	"github.com/stretchr/testify/require"
)

func nativeBlock(t *testing.T, rows int, revision uint64) []byte {
	t.Helper()
	block := proto.NewBlock()
	require.NoError(t, block.AddColumn("n", "UInt64"))
	require.NoError(t, block.AddColumn("s", "LowCardinality(String)"))
	for i := range rows {
		require.NoError(t, block.Append(uint64(i), strings.Repeat("x", i%3)))
	}
	var b chproto.Buffer
	require.NoError(t, block.Encode(&b, revision))
	return b.Buf
}

func TestReframeGivesWhatTheClientsCodecWrites(t *testing.T) {
	const revision = proto.DBMS_TCP_PROTOCOL_VERSION
	in := append(nativeBlock(t, 70_000, 0), nativeBlock(t, 3, 0)...)
	want := append(nativeBlock(t, 70_000, revision), nativeBlock(t, 3, revision)...)
	for name, r := range map[string]io.Reader{"at once": bytes.NewReader(in), "in halves": iotest.HalfReader(bytes.NewReader(in)), "byte by byte": iotest.OneByteReader(bytes.NewReader(in))} {
		var out bytes.Buffer
		require.NoError(t, reframe(&out, r, revision), name)
		require.True(t, bytes.Equal(want, out.Bytes()), name)
	}
	for cut := 1; cut < 40; cut++ {
		short := nativeBlock(t, 3, 0)
		err := reframe(io.Discard, bytes.NewReader(short[:len(short)-cut]), revision)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a block that ends %d bytes early", cut)
	}
}

func TestSpoolMovesToDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := newSpool(dir)
	require.NoError(t, err)
	piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for i := range 40 {
		require.Equal(t, i > 32, s.onDisk)
		_, err := s.Write(piece)
		require.NoError(t, err)
	}
	check := func(r io.Reader) {
		n, err := io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.EqualValues(t, 40<<20, n)
	}
	r, err := s.Reader()
	require.NoError(t, err)
	check(r)
	again, err := os.Open(s.Path())
	require.NoError(t, err)
	check(again)
	require.NoError(t, again.Close())
	require.NoError(t, s.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = diskFile(dir + "/nosuch")
	require.Error(t, err)
}

func TestRegistry(t *testing.T) {
	r := newRegistry(2)
	entries := map[string]*entry{}
	add := func(id string, counted bool) error {
		e := &entry{id: id, counted: counted, cancel: func(error) { entries[id] = nil }}
		err := r.add(e)
		if err == nil {
			entries[id] = e
		}
		return err
	}
	require.NoError(t, add("a", true))
	require.ErrorContains(t, add("a", true), "Code: 216")
	require.ErrorContains(t, add("a", false), "Code: 216")
	require.NoError(t, add("b", true))
	require.ErrorContains(t, add("c", true), "Code: 202")
	require.NoError(t, add("c", false))
	r.remove(entries["a"])
	require.NoError(t, add("a", true), "the place and the id are free again")
	r.cancelIDs([]string{"a", "c"}, "c")
	require.Nil(t, entries["a"])
	require.NotNil(t, entries["c"], "not the one that asks")
}

func TestRegistryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(0)
		require.NoError(t, r.wait(t.Context()), "nothing runs")
		e := &entry{id: "a", cancel: func(error) {}}
		require.NoError(t, r.add(e))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.wait(ctx), context.DeadlineExceeded)
		go func() {
			time.Sleep(time.Minute)
			r.remove(e)
		}()
		start := time.Now()
		require.NoError(t, r.wait(t.Context()))
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestFramed(t *testing.T) {
	for _, method := range []string{"LZ4", "ZSTD", "NONE"} {
		var b bytes.Buffer
		f := newFramed(&b, method)
		want := bytes.Repeat([]byte("a piece of a result, "), 200_000)
		n, err := f.Write(want)
		require.NoError(t, err)
		require.Equal(t, len(want), n)
		require.NoError(t, f.Close())
		r := chproto.NewReader(&b)
		r.EnableCompression()
		got := make([]byte, len(want))
		require.NoError(t, r.ReadFull(got))
		require.True(t, bytes.Equal(want, got))
	}
}

func TestEncodeBody(t *testing.T) {
	for accept, want := range map[string]string{"": "", "identity": "", "gzip;q=0, br": "br", "xz, zstd;q=0.5": "zstd", "GZIP": "gzip", "*": "", "lz4": "lz4", "deflate, gzip": "deflate"} {
		got, w := encodeBody(accept, io.Discard)
		require.Equal(t, want, got, accept)
		require.Equal(t, want != "", w != nil)
	}
}
