package server

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// decodeBody undoes the Content-Encoding of a request.
func decodeBody(encoding string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			return nil, exception(271, "CANNOT_DECOMPRESS", "The body is not gzip: %v", err)
		}
		return r, nil
	case "deflate":
		r, err := zlib.NewReader(body)
		if err != nil {
			return nil, exception(271, "CANNOT_DECOMPRESS", "The body is not deflate: %v", err)
		}
		return r, nil
	case "br":
		return brotliBody{brotli.NewReader(body)}, nil
	case "lz4":
		return lz4.NewReader(body), nil
	case "zstd":
		r, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, exception(271, "CANNOT_DECOMPRESS", "The body is not zstd: %v", err)
		}
		return r.IOReadCloser(), nil
	}
	return nil, exception(89, "UNKNOWN_COMPRESSION_METHOD", "Unknown compression method %s", encoding)
}

// brotliBody reads a brotli stream to its end and no further. The decoder takes the last byte of a
// stream for excessive input when that arrives by itself, as it does from clickhouse-go.
type brotliBody struct{ r io.Reader }

func (b brotliBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && err.Error() == "brotli: excessive input" {
		err = io.EOF
	}
	return n, err
}

// encodeBody picks the Content-Encoding of a response from what the client accepts, in the order of
// its own wish; it gives "" when nothing is to be done.
func encodeBody(accept string, w io.Writer) (encoding string, out io.WriteCloser) {
	for item := range strings.SplitSeq(accept, ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(item), ";")
		if strings.TrimSpace(quality) == "q=0" {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip":
			return "gzip", gzip.NewWriter(w)
		case "deflate":
			return "deflate", zlib.NewWriter(w)
		case "br":
			return "br", brotli.NewWriterLevel(w, brotli.BestSpeed)
		case "lz4":
			return "lz4", lz4.NewWriter(w)
		case "zstd":
			enc, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				continue
			}
			return "zstd", enc
		}
	}
	return "", nil
}

// framed writes ClickHouse's own compressed frames, as compress=1 asks for.
type framed struct {
	w   io.Writer
	enc *compress.Writer
	buf []byte
}

// frameSize is how much goes into one compressed frame.
const frameSize = 1 << 20

func newFramed(w io.Writer, method string) *framed {
	m := compress.LZ4
	switch method {
	case "ZSTD":
		m = compress.ZSTD
	case "NONE":
		m = compress.None
	}
	return &framed{w: w, enc: compress.NewWriter(0, m)}
}

func (f *framed) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		take := min(frameSize-len(f.buf), len(p))
		f.buf = append(f.buf, p[:take]...)
		p = p[take:]
		if len(f.buf) == frameSize {
			if err := f.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (f *framed) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	if err := f.enc.Compress(f.buf); err != nil {
		return err
	}
	f.buf = f.buf[:0]
	_, err := f.w.Write(f.enc.Data)
	return err
}

// unframed reads ClickHouse's own compressed frames, as decompress=1 announces. The codec wraps the
// end of the stream, which readers want plain.
type unframed struct{ r *compress.Reader }

func (u unframed) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// Close sends what is left.
func (f *framed) Close() error { return f.flush() }
