package tidbast

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// render prints a partition key in short, as the token extractor does where it is a plain column. Any other expression is
// printed by the kind of its operation only.
func render(e ast.ExprNode) string {
	if c, ok := column(e); ok {
		return strings.Join(append(c.Qualifier, c.Name), ".")
	}
	return "?"
}
