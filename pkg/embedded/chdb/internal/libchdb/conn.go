package libchdb

import (
	"runtime"
	"time"
	"unsafe"
)

// Conn is one connection: a session of the engine that runs one statement at a time.
// It is not safe for concurrent use; several connections run in parallel.
type Conn struct {
	lib    *Library
	handle unsafe.Pointer
}

// Param is a value for a {name:Type} placeholder.
type Param struct {
	Name  string
	Value string
}

// Result is what a statement gave back. The counters are the engine's own.
type Result struct {
	Data         []byte
	Elapsed      time.Duration
	ResultRows   uint64
	ResultBytes  uint64
	ReadRows     uint64
	ReadBytes    uint64
	WrittenRows  uint64
	WrittenBytes uint64
}

// Query runs one statement and waits for its end. Output that is not sent elsewhere by the
// statement itself is held in memory, so large results belong INTO OUTFILE. Errors of the engine
// are *Exception.
func (c *Conn) Query(sql, format string, params []Param) (Result, error) {
	names, nameLens := make([]unsafe.Pointer, len(params)), make([]uintptr, len(params))
	values, valueLens := make([]unsafe.Pointer, len(params)), make([]uintptr, len(params))
	for i, p := range params {
		names[i], nameLens[i] = text(p.Name)
		values[i], valueLens[i] = text(p.Value)
	}
	query, queryLen := text(sql)
	output, outputLen := text(format)
	raw := c.lib.queryParams(c.inner(), query, queryLen, output, outputLen,
		unsafe.Pointer(unsafe.SliceData(names)), unsafe.Pointer(unsafe.SliceData(nameLens)),
		unsafe.Pointer(unsafe.SliceData(values)), unsafe.Pointer(unsafe.SliceData(valueLens)), uintptr(len(params)))
	runtime.KeepAlive(params)
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	if raw == nil {
		return Result{}, &Exception{Code: codeUnknownException, Message: "the engine gave no result"}
	}
	defer c.lib.destroyResult(raw)
	if message := c.lib.resultError(raw); message != "" {
		return Result{}, parseException(message)
	}
	res := Result{
		Elapsed:      time.Duration(c.lib.resultElapsed(raw) * float64(time.Second)),
		ResultRows:   c.lib.resultRows(raw),
		ResultBytes:  c.lib.resultBytes(raw),
		ReadRows:     c.lib.storageRows(raw),
		ReadBytes:    c.lib.storageBytes(raw),
		WrittenRows:  c.lib.writtenRows(raw),
		WrittenBytes: c.lib.writtenBytes(raw),
	}
	if n := c.lib.resultLength(raw); n > 0 {
		res.Data = append(res.Data, unsafe.Slice((*byte)(c.lib.resultBuffer(raw)), n)...)
	}
	return res, nil
}

// Class is what a statement does to state that outlives it.
type Class uint32

// The classes, in the library's own order: the more restricted, the higher.
const (
	ReadOnly Class = iota
	Mutating
	MutatingGlobal
	Control
	Unknown
)

// Analysis is what Classify found. Statements is 0 for text that does not parse.
type Analysis struct {
	Class      Class
	Statements int
}

// Classify parses the text with this connection's parser and settings without running it.
func (c *Conn) Classify(sql string) Analysis {
	var out struct{ size, statements, flags, class uint32 }
	out.size = uint32(unsafe.Sizeof(out))
	query, queryLen := text(sql)
	state := c.lib.classify(c.inner(), query, queryLen, nil, 0, unsafe.Pointer(&out))
	runtime.KeepAlive(sql)
	if state != 0 {
		return Analysis{Class: Unknown}
	}
	return Analysis{Class: Class(out.class), Statements: int(out.statements)}
}

// Close ends the connection. Closing the last one shuts the engine down.
func (c *Conn) Close() {
	if c.handle == nil {
		return
	}
	c.lib.closeConn(c.handle)
	c.handle = nil
}

// inner is the handle behind the pointer that chdb_connect returned.
func (c *Conn) inner() unsafe.Pointer { return *(*unsafe.Pointer)(c.handle) }

func text(s string) (unsafe.Pointer, uintptr) {
	if s == "" {
		return unsafe.Pointer(&empty[0]), 0
	}
	return unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s))
}

// empty stands in for the address of an empty string, which Go does not promise to be valid.
var empty = [1]byte{}
