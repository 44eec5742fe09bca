package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTempFolders(t *testing.T) {
	parent := t.TempDir()
	mine, remove, err := tempFolder(parent)
	require.NoError(t, err)
	// A process that was killed leaves its folder, and nobody's lock on it.
	left := filepath.Join(parent, tempName+"left")
	require.NoError(t, os.MkdirAll(filepath.Join(left, "topics"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(left, tempLock), nil, 0o600))
	foreign := filepath.Join(parent, tempName+"foreign")
	require.NoError(t, os.MkdirAll(foreign, 0o755))

	other, removeOther, err := tempFolder(parent)
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.DirExists(t, mine, "it is in use")
	require.DirExists(t, foreign, "nothing says that it is ours")
	require.NoError(t, remove())
	require.NoDirExists(t, mine)
	require.NoError(t, removeOther())
	require.NoDirExists(t, other)
	_, _, err = tempFolder(filepath.Join(parent, "missing"))
	require.Error(t, err)
}
