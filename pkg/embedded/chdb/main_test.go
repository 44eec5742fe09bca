package chdb_test

import (
	"os"
	"testing"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	os.Exit(m.Run())
}
