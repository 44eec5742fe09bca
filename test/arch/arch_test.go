package arch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestImportsKeepToTheLayers(t *testing.T) {
	graph := list(t)
	for _, v := range Check(graph) {
		t.Error(v)
	}
}

func TestCoreReadsNoClockAndNoGlobalRandomness(t *testing.T) {
	found, err := Clock(list(t))
	require.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

// A name in the table that has no package is a leftover, or a typing mistake that switches a rule off.
func TestTheTableNamesWhatExists(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	for _, path := range core {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("the table's core package %s: %v", path, err)
		}
	}
}

func list(t *testing.T) Graph {
	t.Helper()
	root, err := Root()
	require.NoError(t, err)
	graph, err := List(root)
	require.NoError(t, err)
	require.Contains(t, graph, Module+"/test/arch", "go list has listed something else")
	return graph
}
