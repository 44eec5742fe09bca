package statement

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// piece draws a piece of SQL that is closed in itself: whatever stands inside means nothing outside.
func piece() *rapid.Generator[string] {
	hidden := rapid.SampledFrom([]string{";", "; DROP TABLE t", "FORMAT JSON", "INTO OUTFILE 'x'", "VALUES (1)", "system.processes", "query_id", "\n\n", "(", "]", "--", "/*", "x"})
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "1", "1.5e3", "(1)", "[1]", ",", "+", "f(x)", "WHERE", "AND", "{p:UInt8}", "t.c", "é"}),
		rapid.Map(rapid.SliceOf(hidden), func(h []string) string { return Quote(strings.Join(h, "")) }),
		rapid.Map(rapid.SliceOf(hidden), func(h []string) string { return QuoteName(strings.Join(h, "")) }),
		rapid.Map(rapid.SliceOf(hidden), func(h []string) string { return "$h$" + strings.Join(h, "") + "$h$" }),
		rapid.Map(rapid.SliceOf(hidden), func(h []string) string {
			return "/* " + strings.ReplaceAll(strings.Join(h, ""), "*/", "") + " */"
		}),
		rapid.Map(rapid.SliceOf(hidden), func(h []string) string {
			return "-- " + strings.ReplaceAll(strings.Join(h, ""), "\n", " ") + "\n"
		}),
	)
}

func statements() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOf(piece()), func(p []string) string { return "SELECT " + strings.Join(p, " ") })
}

func TestWhatIsQuotedMeansNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := statements().Draw(t, "text")
		s, err := Parse(text, true)
		require.NoError(t, err)
		require.Equal(t, text, s.Text())
		require.Nil(t, s.Insert())
		require.Empty(t, s.Format(""))
		require.False(t, s.ReadsProcesses())
		_, err = Parse(text+";\n-- the end", true)
		require.NoError(t, err)
		_, err = Parse(text+"; SELECT 2", true)
		require.ErrorIs(t, err, ErrMulti)
		s, err = Parse(text+" x FORMAT JSON", true)
		require.NoError(t, err)
		require.Equal(t, "JSON", s.Format(""))
	})
}

func TestDataIsNeverTouched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.String().Draw(t, "data")
		for head, lead := range map[string]string{"INSERT INTO t FORMAT TSV\n": "", "INSERT INTO t VALUES (": " ("} {
			s, err := Parse(head+data, rapid.Bool().Draw(t, "complete"))
			require.NoError(t, err)
			require.NotNil(t, s.Insert())
			require.Equal(t, lead+data, (head + data)[s.Insert().Data:])
		}
	})
}

func TestQuoteAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		require.Equal(t, want, unquote(Quote(want)))
		require.Equal(t, want, unquote(QuoteName(want)))
	})
}

func TestValuesGuard(t *testing.T) {
	for text, want := range map[string]bool{
		"(1), (2)": true, "(1);": true, "(1) ;; \n": true, "(1); -- the end": true, "(1); /* the end; x */": true,
		"('a; b')": true, "('it''s; b')": true, `('it\'s; b')`: true, "(1) -- it's\n, (2)": true, "([1, ';'], {'a': ';'})": true,
		"(1 /* ; */ + 2)": true, "(\"a;\")": true, "(2-1)": true, "(4/2)": true,
		"(1); (2)": false, "(1); DROP TABLE t": false, "('a'); x": false, "(1 /* it's */); x": false, "('\\\\'); x": false, "(1) -- x\n; y": false,
	} {
		// Whatever the pieces in which it comes.
		for size := 1; size <= len(text); size++ {
			var g ValuesGuard
			var err error
			for rest := text; rest != "" && err == nil; {
				n := min(size, len(rest))
				_, err = g.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			require.Equal(t, want, !errors.Is(err, ErrMulti), "%q by %d", text, size)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "INSERT INTO t VALUES (1)", "KILL QUERY WHERE query_id = 'a' SYNC", "SELECT * FROM system.processes FORMAT JSON", "SELECT $a$ x $a$;", "INSERT INTO t SELECT * FROM input('a Int') FORMAT CSV 1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, complete := range []bool{true, false} {
			s, err := Parse(text, complete)
			if err != nil {
				continue
			}
			if in := s.Insert(); in != nil {
				require.LessOrEqual(t, in.Data, len(text))
				_ = in.SQL("/p")
				continue
			}
			require.True(t, strings.HasPrefix(text, s.Text()))
			_, _ = s.Kill("id")
			_, _ = s.Format("x"), s.IntoFile("/p", "x")
			_, _ = s.WithProcesses("v")
			_ = s.Literals()
		}
	})
}
