package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/libchdb"
	"github.com/pointsman/pointsman/pkg/embedded/chdb/internal/statement"
)

// exception makes an error as the engine would write it.
func exception(code int, name, format string, args ...any) error {
	return &libchdb.Exception{Code: code, Message: fmt.Sprintf(format, args...) + " (" + name + ")"}
}

// asException gives any error a ClickHouse code and text.
func asException(err error) *libchdb.Exception {
	var e *libchdb.Exception
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, statement.ErrEmpty):
		return &libchdb.Exception{Code: 62, Message: "Syntax error: Empty query (SYNTAX_ERROR)"}
	case errors.Is(err, statement.ErrMulti):
		return &libchdb.Exception{Code: 62, Message: "Syntax error: Multi-statements are not allowed (SYNTAX_ERROR)"}
	case errors.Is(err, statement.ErrIntoOutfile):
		return &libchdb.Exception{Code: 358, Message: "INTO OUTFILE is not allowed (INTO_OUTFILE_NOT_ALLOWED)"}
	case errors.Is(err, statement.ErrFromInfile):
		return &libchdb.Exception{Code: 78, Message: "FROM INFILE is for the command-line client: send the rows in the body (UNKNOWN_TYPE_OF_QUERY)"}
	case errors.As(err, &tooLarge):
		return &libchdb.Exception{Code: 229, Message: fmt.Sprintf("The statement is longer than %d bytes (QUERY_IS_TOO_LARGE)", tooLarge.Limit)}
	}
	return &libchdb.Exception{Code: 1002, Message: err.Error() + " (UNKNOWN_EXCEPTION)"}
}

// httpStatus is the status that clickhouse-server answers for an error code.
func httpStatus(code int) int {
	switch code {
	case 194, 516:
		return http.StatusUnauthorized
	case 192, 193, 497, 512:
		return http.StatusForbidden
	case 6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223, 321, 376, 427, 441, 675, 676:
		return http.StatusBadRequest
	case 46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511:
		return http.StatusNotFound
	case 229:
		return http.StatusRequestEntityTooLarge
	case 48:
		return http.StatusNotImplemented
	case 209, 76, 439:
		return http.StatusServiceUnavailable
	case 381:
		return http.StatusLengthRequired
	case 159:
		return http.StatusRequestTimeout
	case 779:
		return http.StatusUnsupportedMediaType
	}
	return http.StatusInternalServerError
}
