package statement

// ValuesGuard is a writer that lets the rows of a VALUES list through until something follows a
// semicolon behind them: then it fails with ErrMulti. The engine would drop what follows without a word.
type ValuesGuard struct {
	state guardState
	last  byte // the byte before, within the state
	depth int
	ended bool
}

type guardState uint8

const (
	guardPlain guardState = iota
	guardSingle
	guardDouble
	guardBack
	guardLine  // -- to the end of the line
	guardBlock // /* to */
)

// Write looks at the next piece.
func (g *ValuesGuard) Write(p []byte) (int, error) {
	for i, c := range p {
		if err := g.next(c); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func (g *ValuesGuard) next(c byte) error {
	switch g.state {
	case guardSingle, guardDouble, guardBack:
		g.inString(c)
		return nil
	case guardLine:
		if c == '\n' {
			g.state = guardPlain
		}
		return nil
	case guardBlock:
		if c == '/' && g.last == '*' {
			g.state = guardPlain
			c = 0
		}
		g.last = c
		return nil
	}
	before := g.last
	g.last = c
	switch {
	case c <= ' ':
		return nil
	case c == '-' && before == '-':
		g.state = guardLine
		return nil
	case c == '*' && before == '/':
		g.state, g.last = guardBlock, 0
		return nil
	case g.ended && c != ';' && c != '-' && c != '/':
		return ErrMulti
	case c == '\'':
		g.state, g.last = guardSingle, 0
	case c == '"':
		g.state, g.last = guardDouble, 0
	case c == '`':
		g.state, g.last = guardBack, 0
	case c == '(' || c == '[' || c == '{':
		g.depth++
	case c == ')' || c == ']' || c == '}':
		g.depth--
	case c == ';' && g.depth <= 0:
		g.ended = true
	}
	return nil
}

// inString follows a quoted piece. A doubled quote ends it and begins the next one, which comes to the same.
func (g *ValuesGuard) inString(c byte) {
	quote := guardQuotes[g.state]
	switch {
	case g.last == '\\':
		g.last = 0
	case c == quote:
		g.state, g.last = guardPlain, 0
	default:
		g.last = c
	}
}

var guardQuotes = [...]byte{guardSingle: '\'', guardDouble: '"', guardBack: '`'}
