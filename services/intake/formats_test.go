package intake_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/rows"
	"github.com/pointsman/pointsman/services/intake"
)

var columns = []event.Column{{Name: "n", Type: "UInt64"}, {Name: "s", Type: "Nullable(String)"}}

func readArrow(t *testing.T, data []byte) (numbers []uint64, nulls int) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer r.Release()
	for r.Next() {
		numbers = append(numbers, r.RecordBatch().Column(0).(*array.Uint64).Uint64Values()...)
		nulls += r.RecordBatch().Column(1).NullN()
	}
	require.NoError(t, r.Err())
	return numbers, nulls
}

func TestFormatsOfAnInlineResult(t *testing.T) {
	b := start(t, withTopics(t), nil)
	end := func(id string) {
		b.end(event.Outcome{TaskID: id, Tenant: "t", Result: &event.Result{
			Columns: columns, Rows: 2, Format: "json", Inline: json.RawMessage(`[["18446744073709551615", ""], ["1", null]]`),
		}})
		b.eventually(func() bool { return b.do("GET", "/v1/tasks/"+id+"/result", "").status == 200 }, "ended")
	}
	get := func(id string, headers ...string) answer {
		return b.do("GET", "/v1/tasks/"+id+"/result", "", headers...)
	}
	const csv = "n,s\r\n18446744073709551615,\"\"\r\n1,\r\n"

	plain := b.submit(`{"sql":"SELECT 1","tenant":"t"}`)
	end(plain)
	require.Equal(t, rows.MediaJSON, get(plain).header.Get("Content-Type"))
	a := get(plain, "Accept", "text/csv")
	require.Equal(t, rows.MediaCSV, a.header.Get("Content-Type"))
	require.Equal(t, csv, string(a.body))
	a = get(plain, "Accept", rows.MediaArrow)
	require.Equal(t, rows.MediaArrow, a.header.Get("Content-Type"))
	numbers, nulls := readArrow(t, a.body)
	require.Equal(t, []uint64{18446744073709551615, 1}, numbers)
	require.Equal(t, 1, nulls)

	wished := b.submit(`{"sql":"SELECT 1","tenant":"t","resultFormat":"csv"}`)
	end(wished)
	require.Equal(t, csv, string(get(wished).body), "what the request asked for")
	require.Equal(t, csv, string(get(wished, "Accept", "*/*").body))
	require.Equal(t, rows.MediaNDJSON, get(wished, "Accept", rows.MediaNDJSON).header.Get("Content-Type"), "but Accept has the last word")
	require.Equal(t, 406, get(wished, "Accept", "text/html").status)

	a = b.do("POST", "/v1/queries", `{"sql":"SELECT 1","tenant":"t","resultFormat":"xlsx"}`)
	require.Equal(t, 422, a.status)
	require.Contains(t, string(a.body), "resultFormat")
}

// file puts a result file of n rows into the folder.
func file(t *testing.T, folder string, f rows.Format, n int) string {
	t.Helper()
	name := "r." + string(f)
	out, err := os.Create(filepath.Join(folder, name))
	require.NoError(t, err)
	buffer := bufio.NewWriter(out)
	w, err := rows.NewWriter(f, buffer, columns)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, w.Write([]any{uint64(i), strings.Repeat("x", 100)}))
	}
	require.NoError(t, w.Close())
	require.NoError(t, buffer.Flush())
	require.NoError(t, out.Close())
	return name
}

func TestFormatsOfAResultFile(t *testing.T) {
	folder := t.TempDir()
	b := start(t, withTopics(t), func(c *intake.Config) { c.Results.Folder = folder })
	for _, f := range []rows.Format{rows.NDJSON, rows.CSV, rows.Arrow} {
		id := string(f)
		b.end(event.Outcome{TaskID: id, Tenant: "t", Result: &event.Result{Columns: columns, Rows: 1000, Format: id, File: file(t, folder, f, 1000)}})
		b.eventually(func() bool { return b.do("GET", "/v1/tasks/"+id+"/result", "").status == 200 }, "ended")
		own, err := os.ReadFile(filepath.Join(folder, "r."+id))
		require.NoError(t, err)
		a := b.do("GET", "/v1/tasks/"+id+"/result", "")
		require.Equal(t, f.Media(), a.header.Get("Content-Type"))
		require.Equal(t, own, a.body)
		a = b.do("GET", "/v1/tasks/"+id+"/result", "", "Range", "bytes=10-19")
		require.Equal(t, 206, a.status)
		require.Equal(t, own[10:20], a.body)
		for _, other := range []rows.Format{rows.NDJSON, rows.CSV, rows.Arrow, rows.JSON} {
			a := b.do("GET", "/v1/tasks/"+id+"/result", "", "Accept", other.Media())
			if other != f && (f != rows.NDJSON || other == rows.JSON) {
				require.Equal(t, 406, a.status, "%s as %s", f, other)
				continue
			}
			require.Equal(t, 200, a.status)
			elsewhere := t.TempDir()
			want, err := os.ReadFile(filepath.Join(elsewhere, file(t, elsewhere, other, 1000)))
			require.NoError(t, err)
			require.Equal(t, want, a.body, "%s as %s is what the file would have been", f, other)
			if other == rows.Arrow {
				numbers, _ := readArrow(t, a.body)
				require.Len(t, numbers, 1000)
			}
		}
	}
}

// A file that breaks off must not be taken for the whole result in another format.
func TestABrokenFileIsNotTakenForTheWhole(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "r.ndjson"), []byte("[\"1\",\"x\"]\n[\"2"), 0o600))
	b := start(t, withTopics(t), func(c *intake.Config) { c.Results.Folder = folder })
	b.end(event.Outcome{TaskID: "t1", Tenant: "t", Result: &event.Result{Columns: columns, Rows: 2, Format: "ndjson", File: "r.ndjson"}})
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/t1/result", "").status == 200 }, "ended")
	_, err := b.try(b.request("GET", "/v1/tasks/t1/result", "", "Accept", rows.MediaCSV))
	require.Error(t, err)
}

// openFiles counts this process's open files that lie in a folder.
func openFiles(t *testing.T, folder string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files can't be counted here")
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, folder+"/") {
			n++
		}
	}
	return n
}

// A reader that goes away, and one that stays and reads nothing, free the file and the connection.
func TestAReaderThatGoesAwayFreesEverything(t *testing.T) {
	folder := t.TempDir()
	b := start(t, withTopics(t), func(c *intake.Config) { c.Results.Folder, c.Results.Stall = folder, 500*time.Millisecond })
	name := file(t, folder, rows.NDJSON, 200_000) // far more than all buffers on the way hold
	b.end(event.Outcome{TaskID: "t1", Tenant: "t", Result: &event.Result{Columns: columns, Rows: 200_000, Format: "ndjson", File: name}})
	b.eventually(func() bool { return b.do("GET", "/v1/tasks/t1", "").status == 200 }, "ended")
	for _, media := range []string{rows.MediaNDJSON, rows.MediaCSV, rows.MediaArrow} {
		for _, stays := range []bool{false, true} {
			t.Run(media+" "+strconv.FormatBool(stays), func(t *testing.T) {
				conn, err := net.Dial("tcp", b.app.Addr().String())
				require.NoError(t, err)
				defer conn.Close()
				_, err = fmt.Fprintf(conn, "GET /v1/tasks/t1/result HTTP/1.1\r\nHost: x\r\nAccept: %s\r\n\r\n", media)
				require.NoError(t, err)
				_, err = io.ReadFull(conn, make([]byte, 1000))
				require.NoError(t, err)
				require.Equal(t, 1, openFiles(t, folder))
				if !stays {
					require.NoError(t, conn.Close())
				}
				require.Eventually(t, func() bool { return openFiles(t, folder) == 0 }, 10*time.Second, 10*time.Millisecond)
			})
		}
	}
	// One that is slow, and takes something from time to time, gets all of it.
	resp, err := http.Get(b.url("/v1/tasks/t1/result"))
	require.NoError(t, err)
	defer resp.Body.Close()
	total := 0
	buf := make([]byte, 1<<20)
	for {
		n, err := resp.Body.Read(buf)
		total += n
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		if total < 4<<20 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	info, err := os.Stat(filepath.Join(folder, name))
	require.NoError(t, err)
	require.EqualValues(t, info.Size(), total)
}
