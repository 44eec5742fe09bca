package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pointsman/pointsman/pkg/engine/wire"
)

func TestName(t *testing.T) {
	for id, want := range map[string]string{
		"01JD8ZK3Q6M9/1": "01JD8ZK3Q6M9/1",
		"a.b:c-d_e/12":   "a.b:c-d_e/12",
	} {
		require.Equal(t, want, wire.Name(id))
	}
	for _, id := range []string{"", "späte/1", "a b/1", "x*/ DROP TABLE t; /*", "a~b", "it's/1", strings.Repeat("x", 64)} {
		name := wire.Name(id)
		require.NotEqual(t, id, name)
		require.LessOrEqual(t, len(name), wire.MaxName)
		require.Contains(t, name, "~")
	}
	require.Equal(t, strings.Repeat("x", 63), wire.Name(strings.Repeat("x", 63)))
}

func TestNamesAreSafeAndOneToOne(t *testing.T) {
	ids := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9~*/ ']{0,80}`), rapid.StringMatching(`[A-Za-z0-9/._:-]{60,70}`))
	rapid.Check(t, func(t *rapid.T) {
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		name := wire.Name(a)
		require.LessOrEqual(t, len(name), wire.MaxName)
		require.NotContains(t, name, "*/")
		require.Regexp(t, `^[A-Za-z0-9/._:~-]+$`, name)
		require.LessOrEqual(t, len(wire.LockName(a)), 64, "MySQL takes no longer ones")
		require.Equal(t, strings.ToLower(wire.LockName(a)), wire.LockName(a))
		if a != b {
			require.NotEqual(t, name, wire.Name(b))
			require.NotEqual(t, wire.LockName(a), wire.LockName(b))
		}
	})
}
