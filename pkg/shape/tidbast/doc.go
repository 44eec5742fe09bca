// Package tidbast reads the shape of a statement from the syntax tree of TiDB's parser.
//
// The parser speaks MySQL; other dialects reach it through a shim that prints their tokens in MySQL's spelling. Literals are
// replaced by the numbers of their slots, so that the tree never holds a value and lists are as short as in canonical text.
// What the parser rejects, and what is too large for its recursive trees, is left to package shape's own token extractor,
// which must find the same where both read.
package tidbast
