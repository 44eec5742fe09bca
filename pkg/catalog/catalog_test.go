package catalog_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/catalog"
	"github.com/pointsman/pointsman/pkg/signal"
)

func TestFolder(t *testing.T) {
	root := t.TempDir()
	write := func(name string, n int) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), make([]byte, n), 0o644))
	}
	write("orders/1.parquet", 100)
	write("orders/2.parquet", 50)
	write("nation/1.parquet", 7)
	write("nation/readme.txt", 1000)
	now := time.Unix(1000, 0)
	c := catalog.NewFolder(root, "tpch", time.Minute)

	for _, q := range []struct {
		tables []string
		want   float64
		known  bool
	}{
		{[]string{"tpch.orders"}, 150, true},
		{[]string{"TPCH.Orders", "nation"}, 157, true},
		{[]string{"lake.tpch.orders"}, 150, true},
		{[]string{"other.orders"}, 0, false},
		{[]string{"tpch.orders", "tpch.nowhere"}, 0, false},
		{nil, 0, false},
	} {
		v := c.ScanBytes(q.tables, now)
		n, ok := v.Get()
		require.Equal(t, q.known, ok, q.tables)
		require.Equal(t, q.want, n, q.tables)
	}

	write("orders/3.parquet", 50)
	n, _ := c.ScanBytes([]string{"orders"}, now.Add(time.Second)).Get()
	require.Equal(t, 150.0, n, "sizes are kept for a while")
	n, _ = c.ScanBytes([]string{"orders"}, now.Add(2*time.Minute)).Get()
	require.Equal(t, 200.0, n)

	require.Equal(t, signal.Absent, catalog.NewFolder(filepath.Join(root, "gone"), "tpch", 0).ScanBytes([]string{"orders"}, now).State())
}
