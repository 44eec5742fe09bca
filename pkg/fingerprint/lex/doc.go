// Package lex cuts SQL of any dialect into tokens in one forward pass and hashes the normalised token stream on the way.
//
// It never fails and never allocates by itself: broken text ends in a literal or a comment that reaches to the end. What
// the tokens mean (tables, joins, predicates) is left to package shape; identity and printing to package fingerprint.
package lex
