package lex

// frame is one list whose equal neighbours are folded into one: the elements of IN (..) or the rows of VALUES.
// Every element is hashed apart from what surrounds it, so that its repetition can be told and dropped.
type frame struct {
	a, b         uint64 // hash around the list
	keptA, keptB uint64 // hash of the element that was kept last
	depth        int32
	n            uint32
	keptSlot     uint32
	firstSpan    int32
	slot, tokens uint32 // where the present element begins
	rows         bool   // rows of VALUES: the frame has no bracket of its own
	has          bool   // an element was kept
}

func (p *pass) openList(rows bool) {
	if p.lists == maxLists || p.depth >= maxDepth {
		p.res.Flags |= CutDepth
		return
	}
	f := &p.frames[p.lists]
	p.lists++
	*f = frame{a: p.a, b: p.b, depth: int32(p.depth), rows: rows}
	if p.out != nil && p.out.spans != nil {
		f.firstSpan = int32(len(p.out.spans.List))
	}
	p.startElement(f)
}

func (p *pass) startElement(f *frame) {
	p.a, p.b = p.seed.Lo^tagElement, p.seed.Hi^tagElement
	f.slot, f.tokens = p.slot, p.tokens
	if p.out != nil {
		p.out.mark(p.lists - 1)
	}
}

// endElement keeps the element that was just read, or drops it if it repeats the one before.
func (p *pass) endElement(f *frame) {
	f.n++
	if f.has && p.a == f.keptA && p.b == f.keptB {
		if o := p.out; o != nil && o.spans != nil {
			shift := f.slot - f.keptSlot
			for k := o.marks[p.lists-1].spans; k < len(o.spans.List); k++ {
				o.spans.List[k].Slot -= shift
			}
		}
		p.slot, p.tokens = f.slot, f.tokens // the hash is set by who comes next
		if p.out != nil {
			p.out.back(p.lists - 1)
		}
		return
	}
	f.has, f.keptA, f.keptB, f.keptSlot = true, p.a, p.b, f.slot
	p.a, p.b = f.a, f.b
	p.mix(f.keptA, tagElement)
	p.mix(f.keptB, tagElement)
	f.a, f.b = p.a, p.b
}

// nextElement handles the comma between two elements.
func (p *pass) nextElement(f *frame, off int) {
	p.endElement(f)
	p.startElement(f)
	p.tokens++
	if p.out != nil {
		p.out.punct(p, ',', off)
	}
	p.prev = pComma
}

func (p *pass) closeList() {
	f := &p.frames[p.lists-1]
	p.endElement(f)
	p.lists--
	p.a, p.b = f.a, f.b
	p.mix(0, tagEnd)
	p.res.Lists++
	p.res.LongestList = max(p.res.LongestList, f.n)
}

// unlist turns the list that was just opened into plain brackets: it holds a query.
func (p *pass) unlist() {
	f := &p.frames[p.lists-1]
	p.lists--
	p.a, p.b = f.a, f.b
}

// inList is the innermost list if the present depth is where its commas stand.
func (p *pass) inList() *frame {
	if p.lists > 0 {
		if f := &p.frames[p.lists-1]; int(f.depth) == p.depth {
			return f
		}
	}
	return nil
}

// nextRow begins a row of VALUES that no comma sets apart from the one before, as ClickHouse takes them. It prints one, so
// that both spellings are one text.
func (p *pass) nextRow(f *frame) {
	p.endElement(f)
	p.startElement(f)
	p.tokens++
	if o := p.out; o != nil && o.doCanon {
		o.single(p, ',', pComma)
	}
	p.prev = pComma
}

func (p *pass) comma(off int) {
	if p.pend != 0 {
		p.settle(true, false)
	}
	if f := p.inList(); f != nil {
		p.nextElement(f, off)
		p.pend &^= pendRow
		return
	}
	p.mix(',', tagOp)
	p.tokens++
	if p.out != nil {
		p.out.punct(p, ',', off)
	}
	p.prev = pComma
}

func (p *pass) open(off int) {
	c := p.s[off]
	if p.pend&pendRow != 0 && c == '(' && p.rules&ruleInlineData != 0 {
		p.pend &^= pendRow
		p.nextRow(p.inList())
	}
	if p.pend != 0 {
		p.settle(false, false)
	}
	p.mix(uint64(c), tagOp)
	p.tokens++
	if p.out != nil {
		p.out.punct(p, c, off)
	}
	var flags uint8
	if c == '(' {
		flags = p.innerFlags()
	}
	before := p.prev
	p.prev = pOpen
	p.depth++
	p.res.Depth = max(p.res.Depth, uint32(p.depth))
	if p.depth < maxDepth {
		p.depthFlags[p.depth] = flags
	}
	if c == '(' && before == after(KwIn) {
		p.openList(false)
	}
}

// innerFlags says what a round bracket opens, by what stands before it.
func (p *pass) innerFlags() uint8 {
	var out uint8
	if p.depth < maxDepth {
		out = p.depthFlags[p.depth]
	}
	switch {
	case out&inType != 0, p.typeNext && (p.prev == pName || p.prev >= firstWord):
		return inType
	case out&inSets != 0:
		return inBy | inSets
	case out&inBy != 0 && (p.prev == after(KwRollup) || p.prev == after(KwCube) || p.prev == after(KwSets)):
		return inBy | inSets
	case p.prev == after(KwCast) || p.prev == after(KwTryCast):
		return inCast
	}
	return 0
}

func (p *pass) close(off int) {
	if p.pend != 0 {
		p.settle(false, false)
	}
	for p.lists > 0 && int(p.frames[p.lists-1].depth) >= p.depth && (p.depth > 0 || !p.frames[p.lists-1].rows) {
		p.closeList()
	}
	c := p.s[off]
	p.mix(uint64(c), tagOp)
	p.tokens++
	if p.out != nil {
		p.out.punct(p, c, off)
	}
	p.prev = pClose
	if p.depth > 0 {
		p.depth--
	}
	p.typeNext = false
	if f := p.inList(); f != nil && f.rows {
		p.pend |= pendRow
	}
}

// scopeFlags are the flags at the present depth.
func (p *pass) scopeFlags() uint8 {
	if p.depth < maxDepth {
		return p.depthFlags[p.depth]
	}
	return 0
}

func (p *pass) setScope(set, clear uint8) {
	if p.depth < maxDepth {
		p.depthFlags[p.depth] = p.depthFlags[p.depth]&^clear | set
	}
}

// semi remembers a semicolon. Only one between two statements counts; the statement behind it starts afresh.
func (p *pass) semi(off int) {
	p.pend &^= pendRow | pendSign
	for p.lists > 0 {
		p.closeList()
	}
	p.depth, p.depthFlags[0] = 0, 0
	p.typeNext, p.sawSelect = false, false
	if p.res.Verb == NoWord {
		p.res.Verb = p.verb
	}
	p.verb, p.verbState = NoWord, 0
	if p.tokens > 0 {
		p.pend |= pendSemi
		p.semiAt = off
	}
}
