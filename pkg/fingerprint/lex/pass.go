package lex

// prev is what the token before was: one of the codes below, or a keyword plus firstWord.
type prev uint16

const (
	pStart prev = iota
	pName
	pLiteral
	pOrdinal
	pClose
	pComma
	pOpen
	pDot
	pOp
	pAt
	pCast // ::
	pSemi
	pControl
	firstWord prev = 16
)

func after(w Word) prev { return prev(w) + firstWord }

// endsOperand says which tokens a binary operator may follow.
var endsOperand = func() (t [int(firstWord) + int(wordCount)]bool) {
	t[pName], t[pLiteral], t[pOrdinal], t[pClose] = true, true, true, true
	for w := NoWord + 1; w < wordCount; w++ {
		t[after(w)] = words[w].flags&expects == 0
	}
	return t
}()

// scope flags hold per depth of brackets.
const (
	inBy   uint8 = 1 << iota // an ORDER BY or GROUP BY list: integers alone are ordinals
	inSets                   // a list of grouping sets
	inCast                   // the arguments of CAST
	inType                   // a type: integers stay
)

const (
	maxDepth = 48 // deeper brackets are counted only
	maxLists = 8  // more nested lists are not folded
)

// Things that the next token settles.
const (
	pendSemi uint8 = 1 << iota // a semicolon was read and not yet written
	pendSign                   // a sign without a left operand was read
	pendRow                    // a row of VALUES was closed
)

// pass is one run over one text.
type pass struct {
	s     string
	a, b  uint64 // running hash, two lanes
	rules rule
	prev  prev
	pend  uint8
	code  uint8 // inside /*! */
	lists int
	depth int
	verb  Word
	// verbState: 0 nothing read, 1 behind WITH, 2 settled.
	verbState  uint8
	withDepth  int
	typeNext   bool
	sawSelect  bool
	copyIn     bool // rows follow the statement: COPY .. FROM STDIN
	flat       bool // block comments stopped nesting: one of them never ended
	odd        int  // literals that end where a word begins
	guessed    uint8
	qMissing   [2]uint64 // see qEnd
	slot       uint32
	tokens     uint32
	res        Result
	out        *output
	signAt     mark
	signStart  int
	semiAt     int
	seed       Key
	hintA      uint64
	frames     [maxLists]frame
	depthFlags [maxDepth]uint8
}

// output is where a pass writes beside the hash; all of it may be absent.
type output struct {
	canon   []byte
	base    int // canonical text begins here in canon
	tokens  []Token
	spans   *Spans
	doCanon bool
	doToken bool
	limit   int  // of tokens
	loneDot bool // the dot printed last would join with digits behind it
	last    Kind // of the token printed last, with its text's class in lastPrev
	lastP   prev
	marks   [maxLists + 1]outMark
}

// mark is a place that a pass can go back to. What was written by then is kept by the output.
type mark struct {
	a, b         uint64
	slot, tokens uint32
}

// outMark is how much an output had written at a mark.
type outMark struct {
	canon, tokens, spans int
	last                 Kind
	lastP                prev
	loneDot              bool
}

// signMark is the number of the mark in front of a sign; lists use the numbers below.
const signMark = maxLists

// mark remembers the present place, in front of a sign.
func (p *pass) mark(m *mark) {
	m.a, m.b, m.slot, m.tokens = p.a, p.b, p.slot, p.tokens
	if p.out != nil {
		p.out.mark(signMark)
	}
}

// back forgets what was written since the mark. Spans stay: the caller says what becomes of them.
func (p *pass) back(m *mark) {
	p.a, p.b, p.slot, p.tokens = m.a, m.b, m.slot, m.tokens
	if p.out != nil {
		p.out.back(signMark)
	}
}

// mark remembers how much was written, under a number.
func (o *output) mark(number int) {
	k := &o.marks[number]
	k.canon, k.tokens, k.last, k.lastP, k.loneDot = len(o.canon), len(o.tokens), o.last, o.lastP, o.loneDot
	if o.spans != nil {
		k.spans = len(o.spans.List)
	}
}

func (o *output) back(number int) {
	k := &o.marks[number]
	o.canon, o.tokens, o.last, o.lastP, o.loneDot = o.canon[:k.canon], o.tokens[:k.tokens], k.last, k.lastP, k.loneDot
}

// Run makes one pass over a text. Seeds make the key private to a process; spans may be nil.
func Run(s string, d Dialect, seed Key, spans *Spans) Result {
	if spans == nil {
		return run(s, d, seed, nil)
	}
	o := output{spans: spans}
	return run(s, d, seed, &o)
}

// Canonical appends the canonical text.
func Canonical(dst []byte, s string, d Dialect) ([]byte, Result) {
	o := output{canon: dst, base: len(dst), doCanon: true}
	r := run(s, d, Key{}, &o)
	return o.canon, r
}

// Tokens appends at most limit tokens of a text to dst, and its literals to spans if there are any wanted.
func Tokens(dst []Token, s string, d Dialect, spans *Spans, limit int) ([]Token, Result) {
	o := output{tokens: dst, doToken: true, spans: spans, limit: len(dst) + limit}
	r := run(s, d, Key{}, &o)
	return o.tokens, r
}

func run(s string, d Dialect, seed Key, o *output) Result {
	rules := d.info().rules
	if rules&ruleGuess != 0 {
		return guess(s, d, seed, o)
	}
	p := pass{s: s, rules: rules, out: o}
	p.start(d, seed)
	p.scan()
	return p.res
}

// guess reads a text of unknown dialect. If a backslash as an escape leaves the text broken, it tries without.
func guess(s string, d Dialect, seed Key, o *output) Result {
	rules := d.info().rules
	p := pass{s: s, rules: rules, out: o}
	p.start(d, seed)
	p.scan()
	if p.odd == 0 && p.res.Flags&OpenLiteral == 0 {
		return p.res
	}
	q := pass{s: s, rules: rules ^ ruleBackslash, out: o}
	q.start(d, seed)
	if o != nil {
		o.restart()
	}
	q.scan()
	if !p.better(&q) {
		return q.res
	}
	if o != nil {
		o.restart()
		again := pass{s: s, rules: rules, out: o}
		again.start(d, seed)
		again.scan()
	}
	return p.res
}

// better compares two guesses at the escape rule by how broken they leave the text.
func (p *pass) better(q *pass) bool {
	open, qOpen := p.res.Flags&OpenLiteral != 0, q.res.Flags&OpenLiteral != 0
	if open != qOpen {
		return qOpen
	}
	return p.odd <= q.odd
}

func (o *output) restart() {
	o.canon, o.tokens, o.last, o.lastP = o.canon[:o.base], o.tokens[:0], None, pStart
}

func (p *pass) start(d Dialect, seed Key) {
	p.seed = Key{Hi: seed.Hi ^ 0x9e3779b97f4a7c15, Lo: seed.Lo ^ 0xd1b54a32d192ed03}
	p.a, p.b = p.seed.Hi^familySeeds[d.known()], p.seed.Lo
	if p.rules&ruleNested == 0 {
		p.flat = true
	}
	if o := p.out; o != nil && o.spans != nil {
		o.spans.Reset()
	}
}

// familySeeds set the dialects' families apart in the key.
var familySeeds = func() (t [dialectCount]uint64) {
	for d := range dialectCount {
		family := d.Family()
		t[d] = load8(family, 0, len(family)) * laneA
	}
	return t
}()

// finish settles what the end of the text leaves open and fills in the result.
func (p *pass) finish() {
	p.pend &^= pendSemi
	for p.lists > 0 {
		p.closeList()
	}
	if p.tokens > 0 {
		p.res.Key = Key{Hi: p.a, Lo: p.b}
	}
	if p.res.Verb == NoWord {
		p.res.Verb = p.verb
	}
	p.res.Tokens, p.res.Slots = p.tokens, p.slot
	p.res.Hint = p.hintA
}
