package libchdb

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseException(t *testing.T) {
	for text, want := range map[string]Exception{
		"Code: 62. DB::Exception: Syntax error. (SYNTAX_ERROR)": {62, "Syntax error. (SYNTAX_ERROR)"},
		"Code: 452. DB::Exception: Code: 452. DB::Exception: Too much. (SETTING_CONSTRAINT_VIOLATION) (version 26.7.2.1). (SETTING_CONSTRAINT_VIOLATION)": {
			452, "Too much. (SETTING_CONSTRAINT_VIOLATION)",
		},
		"Code: 241. DB::Exception: Code: 241. DB::Exception: Over\nthe limit. (MEMORY_LIMIT_EXCEEDED) (version 26.7.2.1 (official build)). (MEMORY_LIMIT_EXCEEDED)": {
			241, "Over\nthe limit. (MEMORY_LIMIT_EXCEEDED)",
		},
		"Code: 210. DB::NetException: Code: 1. DB::Exception is what it said. (NETWORK_ERROR)": {210, "Code: 1. DB::Exception is what it said. (NETWORK_ERROR)"},
		"something else": {codeUnknownException, "something else"},
	} {
		require.Equal(t, want, *parseException(text))
	}
	require.EqualError(t, parseException("Code: 1. DB::Exception: x"), "Code: 1. DB::Exception: x")
}
