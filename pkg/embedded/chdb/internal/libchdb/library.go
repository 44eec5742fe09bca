package libchdb

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is an opened engine library.
type Library struct {
	connect       func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn     func(conn unsafe.Pointer)
	queryParams   func(conn, query unsafe.Pointer, queryLen uintptr, format unsafe.Pointer, formatLen uintptr, names, nameLens, values, valueLens unsafe.Pointer, count uintptr) unsafe.Pointer
	classify      func(conn, sql unsafe.Pointer, sqlLen uintptr, database unsafe.Pointer, databaseLen uintptr, out unsafe.Pointer) int32
	destroyResult func(result unsafe.Pointer)
	resultBuffer  func(result unsafe.Pointer) unsafe.Pointer
	resultLength  func(result unsafe.Pointer) uintptr
	resultError   func(result unsafe.Pointer) string
	resultElapsed func(result unsafe.Pointer) float64
	resultRows    func(result unsafe.Pointer) uint64
	resultBytes   func(result unsafe.Pointer) uint64
	storageRows   func(result unsafe.Pointer) uint64
	storageBytes  func(result unsafe.Pointer) uint64
	writtenRows   func(result unsafe.Pointer) uint64
	writtenBytes  func(result unsafe.Pointer) uint64
	setSignals    func(enabled int32)
	version       func() string
}

// Open loads the library at path and takes its signal handlers out of the way of the Go runtime's.
func Open(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", path, err)
	}
	l := &Library{}
	for name, target := range map[string]any{
		"chdb_connect":                     &l.connect,
		"chdb_close_conn":                  &l.closeConn,
		"chdb_query_with_params_n":         &l.queryParams,
		"chdb_classify_query_n":            &l.classify,
		"chdb_destroy_query_result":        &l.destroyResult,
		"chdb_result_buffer":               &l.resultBuffer,
		"chdb_result_length":               &l.resultLength,
		"chdb_result_error":                &l.resultError,
		"chdb_result_elapsed":              &l.resultElapsed,
		"chdb_result_rows_read":            &l.resultRows,
		"chdb_result_bytes_read":           &l.resultBytes,
		"chdb_result_storage_rows_read":    &l.storageRows,
		"chdb_result_storage_bytes_read":   &l.storageBytes,
		"chdb_result_rows_written":         &l.writtenRows,
		"chdb_result_bytes_written":        &l.writtenBytes,
		"chdb_set_signal_handlers_enabled": &l.setSignals,
		"chdb_version":                     &l.version,
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("loading %s: it is too old or not the engine library, %s is missing: %w", path, name, err)
		}
		purego.RegisterFunc(target, symbol)
	}
	l.setSignals(0)
	return l, nil
}

// Version is the version of the library, for example "26.7.3".
func (l *Library) Version() string { return l.version() }

// Connect opens a connection. The first one boots the engine with the storage path and the
// configuration file named in args; later ones cost about a fifth of a millisecond. Arguments of
// the form --setting=value apply to this connection only.
func (l *Library) Connect(args []string) (*Conn, error) {
	argv := make([]unsafe.Pointer, 0, len(args)+2)
	keep := make([][]byte, 0, len(args)+1)
	for _, arg := range append([]string{"clickhouse"}, args...) {
		c := append([]byte(arg), 0)
		keep = append(keep, c)
		argv = append(argv, unsafe.Pointer(unsafe.SliceData(c)))
	}
	argv = append(argv, nil)
	handle := l.connect(int32(len(argv)-1), unsafe.Pointer(unsafe.SliceData(argv)))
	runtime.KeepAlive(keep)
	if handle == nil {
		return nil, errors.New("connecting to the engine: it refused, which means a bad setting, a bad path or a data folder in use by another process")
	}
	return &Conn{lib: l, handle: handle}, nil
}
