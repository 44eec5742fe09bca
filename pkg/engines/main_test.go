package engines_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pointsman/pointsman/pkg/embedded/chdb"
)

func TestMain(m *testing.M) {
	chdb.MaybeRunChild()
	goleak.VerifyTestMain(m)
}
