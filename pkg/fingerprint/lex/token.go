package lex

// Kind is what a token is, as far as cutting can tell.
type Kind uint8

// The kinds of token.
const (
	None     Kind = iota
	Bare          // a name without quotes, or a keyword: then Word says which
	Quoted        // a name in quotes
	Literal       // a value; Slot is its place in the canonical text
	Ordinal       // an integer that stays: ORDER BY 2, decimal(18,2)
	Operator      // one operator, as long as the dialects spell it
	Punct         // one of ( ) [ ] { } , . ;
	Control       // a control byte outside of quotes
)

// Token is one token of a text. Elements of a list that repeat the one before them are left out, as they are from the
// canonical text.
type Token struct {
	Off, End uint32
	Slot     uint32
	Word     Word
	Kind     Kind
}

// Class is what kind of value a literal is.
type Class uint8

// The classes of literals.
const (
	Opaque Class = iota // raw data or text that was cut off
	Number
	String
	Bool
	Null
	Param // a placeholder whose value is not in the text
)

// Span is where one literal stands. Literals of one slot are the values of one place in a list.
type Span struct {
	Off, End uint32
	Slot     uint32
	Class    Class
}

// Spans collects literals into memory that the caller owns and may use again. At most MaxSpans are kept.
type Spans struct {
	List []Span
	// Cut says that some literals were left out, so that a slot may lack values.
	Cut bool
}

// Limits on what one text may make a caller hold.
const (
	// MaxSpans bounds the literals that Spans keeps; later ones are counted but not kept.
	MaxSpans = 1 << 15
	// MaxListSpans bounds the literals that Spans keeps of one list, so that a long list leaves room for what follows it.
	MaxListSpans = 1 << 10
)

// Reset empties the collection and keeps its memory.
func (s *Spans) Reset() { s.List, s.Cut = s.List[:0], false }

// Flag is a fact about a text that one pass finds.
type Flag uint16

// The flags.
const (
	HasWindow Flag = 1 << iota
	HasGroupBy
	HasCTE
	HasLock
	HasHint
	HasMany       // more than one statement
	OpenLiteral   // a literal reaches to the end of the text
	OpenComment   // a comment reaches to the end of the text
	CutDepth      // parentheses go deeper than the lexer follows lists
	HasInlineData // raw data follows the statement
)

// Key is the identity of a normalised text within a process.
type Key struct{ Hi, Lo uint64 }

// Result is what one pass finds. It holds no part of the text.
type Result struct {
	Key Key
	// Hint is a hash of the optimizer hints with their literals left out; zero means that there are none.
	Hint uint64
	// Verb is the keyword that decides the statement's class, behind any WITH.
	Verb Word
	// Flags are the facts found on the way.
	Flags Flag
	// Tokens counts the tokens, Slots the places of literals, both after lists were folded.
	Tokens, Slots uint32
	// Depth is how deep brackets nest.
	Depth uint32
	// Lists counts foldable lists; LongestList is the number of elements of the longest of them.
	Lists, LongestList uint32
}
