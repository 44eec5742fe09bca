package shape_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/fingerprint/lex"
	"github.com/pointsman/pointsman/pkg/shape"
	"github.com/pointsman/pointsman/pkg/shape/tidbast"
)

// A template is kept, so that nothing of it may point into the text: that would keep the text, and with it its literals.
func TestTemplatesKeepNothingOfTheText(t *testing.T) {
	for name, parse := range map[string]func(string) *shape.Template{
		"tokens": func(sql string) *shape.Template {
			var spans lex.Spans
			made, _ := shape.Extract(sql, lex.MySQL, &spans)
			return made
		},
		"tree": func(sql string) *shape.Template { return tidbast.Parse(sql, lex.MySQL) },
	} {
		t.Run(name, func(t *testing.T) {
			sql := "select a, my_udf(b), sum(c) over (partition by d) from s.t where e = 1 and f > now() - interval 5 day and g in ('" +
				strings.Repeat("x", 8<<20) + "')"
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			made := parse(sql)
			require.NotNil(t, made)
			sql = "" //nolint:ineffassign,wastedassign // the last reference to the text, but for what the template keeps
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&after)
			require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(-4<<20), "the text is still held")
			require.Equal(t, []string{"my_udf"}, made.Unbound().UDFs)
			runtime.KeepAlive(made)
		})
	}
}

// What lies beyond the tokens that are looked at may write: then the statement is not called one that only reads.
func TestTextsBeyondTheBoundAreNotCalledReadOnly(t *testing.T) {
	long := "SELECT " + strings.Repeat("a, ", 1<<18) + "b FROM t"
	only := shape.Of(long, lex.MySQL)
	require.True(t, only.ReadOnly)
	for _, more := range []string{"; DROP TABLE u", " FOR UPDATE"} {
		s := shape.Of(long+more, lex.MySQL)
		require.Equal(t, shape.Select, s.Statement)
		require.False(t, s.ReadOnly)
		require.True(t, s.Partial)
	}
}
