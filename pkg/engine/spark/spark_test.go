package spark

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/engine"
	"github.com/pointsman/pointsman/pkg/engine/spark/connect"
)

func TestNamesNeverChange(t *testing.T) {
	require.Equal(t, names{session: "951db9cf-60a0-55f8-a42b-23174b943b60", operation: "2d7ababb-12fe-52bd-94d2-dc6f62581d33"}, namesOf("t-1/1"))
	require.NotEqual(t, namesOf("t-1/1"), namesOf("t-1/2"))
	one, other := namesOf(""), namesOf("")
	require.NotEqual(t, one, other, "what has no id can't be found")
}

func frame(kind, flags byte, body string) []byte {
	var b [9]byte
	binary.BigEndian.PutUint32(b[:4], uint32(len(body))<<8)
	b[3], b[4] = kind, flags
	return append(b[:], body...)
}

// socket keeps what is written to it.
type socket struct {
	net.Conn
	got bytes.Buffer
}

func (s *socket) Write(p []byte) (int, error) { return s.got.Write(p) }

func TestGuardHoldsTheEndOfTheRequestOnly(t *testing.T) {
	hello := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, "settings")...)
	head, part, end := frame(1, 4, "head"), frame(0, 0, "SELECT "), frame(0, 1, "1")
	for _, c := range []struct {
		name   string
		before time.Duration // 0 is no bound
		bar    bool
		sent   bool
	}{
		{"no bound", 0, false, true},
		{"in time", time.Hour, false, true},
		{"too late", -time.Millisecond, false, false},
		{"not wanted any more", time.Hour, true, false},
	} {
		for _, step := range []int{1, 5, 7, 1000} { // however the bytes are cut
			g := &guard{}
			if c.before != 0 {
				g.Before = time.Now().Add(c.before)
			}
			raw := &socket{}
			conn := &guarded{Conn: raw, guard: g}
			write := func(p []byte) (err error) {
				for len(p) > 0 && err == nil {
					n := min(step, len(p))
					_, err = conn.Write(p[:n])
					p = p[n:]
				}
				return err
			}
			for _, p := range [][]byte{hello, head, part} {
				require.NoError(t, write(p), c.name)
			}
			require.False(t, g.WasSent())
			if c.bar {
				require.False(t, g.Bar())
			}
			err := write(end)
			require.Equal(t, c.sent, g.WasSent(), c.name)
			if c.sent {
				require.NoError(t, err)
				require.True(t, bytes.HasSuffix(raw.got.Bytes(), end))
				require.True(t, g.Bar(), "it has left")
				require.NoError(t, write(frame(8, 0, "more")))
				continue
			}
			require.ErrorIs(t, err, engine.ErrGuardExpired)
			require.False(t, bytes.Contains(raw.got.Bytes(), end[:9]), "the header of the last frame is not whole")
			require.Error(t, write(end), "nor does it leave later")
		}
	}
}

func TestPlanned(t *testing.T) {
	number := func(n float64) *float64 { return &n }
	for _, c := range []struct {
		name, text   string
		result, read *float64
	}{
		{"a range", "== Optimized Logical Plan ==\nRange (0, 10, step=1), Statistics(sizeInBytes=80.0 B, rowCount=10)\n\n== Physical Plan ==\n", number(10), number(10)},
		{
			"a join", "== Optimized Logical Plan ==\nAggregate [count(1) AS count(1)#248L], Statistics(sizeInBytes=16.0 B, rowCount=1)\n+- Project, Statistics(sizeInBytes=1066.0 B)\n" +
				"   +- Join Inner, (id#245L = id#246L), Statistics(sizeInBytes=3.1 KiB)\n      :- Range (0, 10, step=1), Statistics(sizeInBytes=80.0 B, rowCount=10)\n" +
				"      +- Range (0, 5, step=1), Statistics(sizeInBytes=40.0 B, rowCount=5)\n\n", number(1), number(15),
		},
		{"large numbers", "== Optimized Logical Plan ==\nRelation lake.t[n#1] parquet, Statistics(sizeInBytes=8.0 EiB, rowCount=1.00E+13)\n\n", number(1e13), number(1e13)},
		{"a table without statistics", "== Optimized Logical Plan ==\nRelation lake.t[n#1] parquet, Statistics(sizeInBytes=8.0 EiB)\n\n", nil, nil},
		{"no plan", "CREATE TABLE", nil, nil},
		{"a line that nobody knows", "== Optimized Logical Plan ==\n???\n\n", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, read := planned(c.text)
			require.Equal(t, c.result, result)
			require.Equal(t, c.read, read)
		})
	}
}

func TestUnplanned(t *testing.T) {
	for _, text := range []string{
		"org.apache.spark.sql.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table `x`. SQLSTATE: 42P01; line 2\n\n== Optimized Logical Plan ==\nagain",
		"Error occurred during query planning: \n[TABLE_OR_VIEW_NOT_FOUND] The table `x`. SQLSTATE: 42P01",
	} {
		e := unplanned(text)
		require.Equal(t, "TABLE_OR_VIEW_NOT_FOUND", e.Code)
		require.Equal(t, "42P01", e.Name)
		require.NotContains(t, e.Error(), "again")
	}
	require.Empty(t, unplanned("something else").Code)
}

func TestIntervals(t *testing.T) {
	field := func(n int32) *int32 { return &n }
	const hour = 3_600_000_000
	for want, got := range map[string]string{
		"INTERVAL '1-2' YEAR TO MONTH":                        yearMonthText(14, nil, nil),
		"INTERVAL '-1-2' YEAR TO MONTH":                       yearMonthText(-14, field(0), field(1)),
		"INTERVAL '3' YEAR":                                   yearMonthText(36, field(0), field(0)),
		"INTERVAL '36' MONTH":                                 yearMonthText(36, field(1), field(1)),
		"INTERVAL '3 04:05:06.789' DAY TO SECOND":             dayTimeText(76*hour+5*60_000_000+6_789_000, nil, nil),
		"INTERVAL '-0 00:00:00.000001' DAY TO SECOND":         dayTimeText(-1, field(0), field(3)),
		"INTERVAL '76:00' HOUR TO MINUTE":                     dayTimeText(76*hour, field(1), field(2)),
		"INTERVAL '3' DAY":                                    dayTimeText(72*hour, field(0), field(0)),
		"INTERVAL '05.5' SECOND":                              dayTimeText(5_500_000, field(3), field(3)),
		"INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND": dayTimeText(-1<<63, nil, nil),
	} {
		require.Equal(t, want, got)
	}
}

func TestTypeNames(t *testing.T) {
	long := &connect.DataType{Kind: &connect.DataType_Long_{Long: &connect.DataType_Long{}}}
	text := &connect.DataType{Kind: &connect.DataType_String_{String_: &connect.DataType_String{}}}
	for want, of := range map[string]*connect.DataType{
		"unknown":            {},
		"array<bigint>":      {Kind: &connect.DataType_Array_{Array: &connect.DataType_Array{ElementType: long}}},
		"map<string,bigint>": {Kind: &connect.DataType_Map_{Map: &connect.DataType_Map{KeyType: text, ValueType: long}}},
		"struct<a:bigint,b c:string>": {Kind: &connect.DataType_Struct_{Struct: &connect.DataType_Struct{
			Fields: []*connect.DataType_StructField{{Name: "a", DataType: long}, {Name: "b c", DataType: text}},
		}}},
		"interval hour to second": {Kind: &connect.DataType_DayTimeInterval_{DayTimeInterval: &connect.DataType_DayTimeInterval{StartField: new(int32(1)), EndField: new(int32(3))}}},
	} {
		require.Equal(t, want, typeName(of))
	}
}

func TestABatchThatIsNone(t *testing.T) {
	for _, data := range []string{"", "x", "\xff\xff\xff\xff\x10\x00\x00\x00garbage and more", "ARROW1\x00\x00"} {
		var b batch
		require.Error(t, b.load(&connect.ExecutePlanResponse_ArrowBatch{RowCount: 1, Data: []byte(data)}, 1), "%q", data)
		require.False(t, b.more())
	}
}

func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"a": "`a`", "a.b": "`a`.`b`", "a.": "`a`", "a`b": "`a``b`", "a; DROP TABLE x": "`a; DROP TABLE x`"} {
		require.Equal(t, want, quoted(in))
	}
}

func TestATokenInTheClear(t *testing.T) {
	_, err := Open(Config{Name: "c", Addr: "127.0.0.1:1", Token: "secret"})
	require.ErrorIs(t, err, ErrToken)
	require.NotContains(t, err.Error(), "secret")
}
