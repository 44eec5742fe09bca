package lex

import "slices"

// bare reads a name without quotes, or a keyword, that begins at i.
func (p *pass) bare(i int) int {
	s := p.s
	var j int
	var raw1, raw2, w1, w2 uint64
	if i+8 <= len(s) {
		raw1 = word8(s, i)
		if m := notInName8(raw1); m != 0 {
			j = i + firstByte(m)
			raw1 &= m&-m>>7 - 1 // the bytes before the first marked one
		} else {
			j = nameEnd(s, i+8)
		}
	} else {
		j = nameEnd(s, i+1)
		raw1 = load8(s, i, j-i)
	}
	n := j - i
	w1 = lower8(raw1)
	if n > 8 {
		raw2 = load8(s, i+8, n-8)
		w2 = lower8(raw2)
	}
	if j < len(s) && (s[j] == '\'' || s[j] == '"' || s[j] == '&') {
		if end, ok := p.prefixed(i, j, w1); ok {
			return end
		}
	}
	kw := NoWord
	if n <= 16 && p.prev != pDot {
		if kw = lookup(w1, w2); kw != NoWord && p.nameAhead(j, kw) {
			kw = NoWord
		}
	}
	if p.rules&ruleCaseBare != 0 && !foldsAlways[kw] {
		w1, w2 = raw1, raw2
	}
	if kw != NoWord {
		return p.keyword(i, j, w1, w2, kw)
	}
	if s[i] == '_' && n <= 8 && p.rules&ruleIntroducer != 0 && j < len(s) && class[s[j]] == cSpace {
		if q := p.peek(j); q < len(s) && s[q] == '\'' && charsets[w1] {
			return p.text(i, q, '\'', p.rules&ruleBackslash != 0)
		}
	}
	if p.rules&ruleRawFile != 0 && p.namesFiles(w1, w2) {
		p.name(i, j, w1, w2)
		return p.rawValue(j)
	}
	p.name(i, j, w1, w2)
	return j
}

// namesFiles says that raw text up to the end of the statement follows the word that comes now: ADD JAR path, LIST FILES,
// DELETE ARCHIVE path, and DFS with a command of the file system.
func (p *pass) namesFiles(w1, w2 uint64) bool {
	if p.verbState == 0 {
		return w1 == dfs && w2 == 0 && p.rules&ruleGuess == 0
	}
	if p.depth > 0 || w2 != 0 || p.prev != after(p.verb) {
		return false
	}
	switch p.verb {
	case KwAdd:
	case KwDelete, KwList:
		if p.rules&ruleGuess != 0 {
			return false
		}
	default:
		return false
	}
	return slices.Contains(resources, w1)
}

var dfs = load8("dfs", 0, 3)

// resources are the kinds of file that a session of Spark or Hive can be given.
var resources = func() (out []uint64) {
	for _, name := range []string{"jar", "jars", "file", "files", "archive", "archives"} {
		out = append(out, load8(name, 0, len(name)))
	}
	return out
}()

// charsets are the character sets that MySQL takes in front of a string with a blank between; without a blank any will do.
var charsets = func() map[uint64]bool {
	m := map[uint64]bool{}
	for _, name := range []string{"_utf8", "_utf8mb4", "_utf8mb3", "_binary", "_latin1", "_ascii", "_ucs2", "_utf16", "_utf32", "_gbk", "_gb2312", "_gb18030", "_big5"} {
		m[load8(name, 0, len(name))] = true
	}
	return m
}()

// foldsAlways are the keywords whose case does not matter even where names are case-sensitive: those that cannot be names.
// Any other may be the name of a column, and then its case counts.
var foldsAlways = func() (t [wordCount]bool) {
	for w := NoWord + 1; w < wordCount; w++ {
		t[w] = words[w].flags&(expects|clause) != 0
	}
	for _, w := range []Word{
		KwEnd, KwNull, KwTrue, KwFalse, KwUsing, KwJoin, KwInner, KwLeft, KwRight, KwFull, KwCross, KwOuter, KwSemi, KwAnti, KwOrder, KwGroup,
		KwPartition, KwAny, KwInsert, KwUpdate, KwDelete, KwCreate, KwAlter, KwDrop, KwTruncate, KwShow, KwDescribe, KwDesc, KwAsc, KwExplain,
		KwOver, KwTable, KwView, KwCast, KwFinal, KwGlobal, KwAsof, KwArray, KwMaterialized, KwTemporary, KwIf, KwOptimize, KwRename, KwExchange,
		KwUse, KwKill, KwGrant, KwRevoke, KwAttach, KwDetach, KwRecursive, KwNulls, KwRollup, KwCube, KwGrouping, KwSets, KwRows, KwRange,
	} {
		t[w] = true
	}
	return t
}()

// nameAhead says whether a dot follows, so that the word before it is a name whatever it spells.
func (p *pass) nameAhead(j int, kw Word) bool {
	if j >= len(p.s) {
		return false
	}
	switch class[p.s[j]] {
	case cDot:
		return true
	case cSpace, cOp:
		if j+1 < len(p.s) && class[p.s[j]] == cSpace {
			switch class[p.s[j+1]] {
			case cWord, cDigit, cOpen, cQuote:
				return false // nearly always
			}
		}
		k := p.peek(j)
		fraction := k+1 < len(p.s) && class[p.s[k+1]] == cDigit && words[kw].flags&expects != 0 // SELECT .5
		return k < len(p.s) && p.s[k] == '.' && !fraction
	}
	return false
}

// name emits a bare name.
func (p *pass) name(i, j int, w1, w2 uint64) {
	if p.pend != 0 {
		p.settle(false, false)
	}
	if p.verbState == 0 {
		p.verbState = 2
	}
	p.typeNext = (p.prev == pName || p.prev == pCast) && p.isType(w1)
	if p.verb == KwCopy && p.prev == after(KwFrom) && lower8(w1) == stdin {
		p.copyIn = true
	}
	p.hashWord(i, j, w1, w2)
	p.tokens++
	if p.out != nil {
		p.out.word(p, i, j, NoWord)
	}
	p.prev = pName
}

var stdin = load8("stdin", 0, 5)

// isType says whether the word that comes now names a type, so that integers in its brackets stay. w holds the folded
// start of the word.
func (p *pass) isType(w uint64) bool {
	switch p.prev {
	case pCast:
		return true
	case pName:
		if p.verb == KwCreate || p.verb == KwAlter {
			w = lower8(w)
			if slices.Contains(sizedTypes, w) {
				return true
			}
		}
		return p.typeNext
	}
	return false
}

// sizedTypes are the first eight bytes of the types that take integers in a column's definition.
var sizedTypes = func() (out []uint64) {
	for _, t := range []string{
		"decimal", "numeric", "dec", "number", "varchar", "char", "characte", "nchar", "nvarchar", "varbinar",
		"binary", "bit", "int", "integer", "bigint", "smallint", "tinyint", "mediumin", "float", "double", "datetime", "timestam",
		"time", "string", "fixedstr", "text", "varchar2", "decimal3", "decimal6", "decimal1", "decimalv", "varying", "vector",
	} {
		out = append(out, load8(t, 0, len(t)))
	}
	return out
}()

func (p *pass) hashWord(i, j int, w1, w2 uint64) {
	p.mix(w1, tagWord)
	if j-i <= 8 {
		return
	}
	p.mix(w2, tagMore)
	for k := i + 16; k < j; k += 8 {
		w := load8(p.s, k, j-k)
		if p.rules&ruleCaseBare == 0 {
			w = lower8(w)
		}
		p.mix(w, tagMore)
	}
}

func (o *output) word(p *pass, i, j int, kw Word) {
	if o.doToken {
		o.token(Token{Off: uint32(i), End: uint32(j), Word: kw, Kind: Bare})
	}
	if o.doCanon {
		code := pName
		if kw != NoWord {
			code = after(kw)
		}
		o.digitName(p.s[i])
		o.gap(p, Bare, code)
		o.canon = appendName(o.canon, p.s[i:j], p.rules&ruleCaseBare == 0 || foldsAlways[kw])
	}
}

// keyword emits a keyword and acts on it. It returns where to read on.
func (p *pass) keyword(i, j int, w1, w2 uint64, kw Word) int {
	switch kw {
	case KwNull, KwTrue, KwFalse:
		if !endsOperand[p.prev] && p.prev != after(KwIs) && p.prev != after(KwNot) {
			c := Bool
			if kw == KwNull {
				c = Null
			}
			p.literal(i, j, c)
			return j
		}
	}
	if p.pend != 0 {
		p.settle(false, false)
	}
	flags := words[kw].flags
	if flags&clause != 0 {
		if f := p.inList(); f != nil && f.rows {
			p.closeList()
		}
		p.setScope(0, inBy)
	}
	if p.verbState != 2 {
		p.heads(kw)
	}
	was := p.prev
	opensQuery := was == pOpen && p.lists > 0
	if opensQuery {
		switch kw {
		case KwSelect, KwWith, KwValues, KwTable, KwFrom:
			if f := p.inList(); f != nil && !f.rows && f.n == 0 {
				p.unlist()
			}
		}
	}
	p.typeNext = (was == pName || was == pCast) && p.isType(w1)
	p.hashWord(i, j, w1, w2)
	p.tokens++
	if p.out != nil {
		p.out.word(p, i, j, kw)
	}
	p.prev = after(kw)
	switch kw {
	case KwValues:
		switch {
		case was == pOp || was == pComma: // MySQL's function VALUES(column)
		case was == after(KwFormat) && p.verb != KwInsert: // ClickHouse's name of a format
		default:
			p.openList(true)
		}
	case KwValue:
		if p.verb == KwInsert || p.verb == KwReplace {
			if k := p.peek(j); endsOperand[was] && k < len(p.s) && p.s[k] == '(' {
				p.openList(true)
			}
		}
	case KwBy:
		if was == after(KwOrder) || was == after(KwGroup) {
			p.setScope(inBy, 0)
			if was == after(KwGroup) {
				p.res.Flags |= HasGroupBy
			}
		} else {
			p.setScope(0, inBy)
		}
	case KwAs:
		if p.scopeFlags()&inCast != 0 {
			p.setScope(inType, 0)
		}
	case KwOver:
		p.res.Flags |= HasWindow
	case KwUpdate, KwShare:
		if was == after(KwFor) {
			p.res.Flags |= HasLock
		}
	case KwSelect:
		if p.depth == 0 {
			p.sawSelect = true
		}
	case KwFormat:
		if p.rules&ruleInlineData != 0 && p.verb == KwInsert && p.depth == 0 && endsOperand[was] {
			return p.inlineData(j)
		}
	}
	return j
}

// heads finds the verb that decides the class of the statement.
func (p *pass) heads(kw Word) {
	switch {
	case p.verbState == 0 && kw == KwWith:
		p.verbState, p.withDepth = 1, p.depth
		p.res.Flags |= HasCTE
	case p.verbState == 0:
		p.verb, p.verbState = kw, 2
	case p.depth == p.withDepth:
		switch kw {
		case KwSelect, KwInsert, KwUpdate, KwDelete, KwMerge, KwFrom, KwValues, KwTable, KwReplace:
			p.verb, p.verbState = kw, 2
		}
	}
}

// inlineData reads the name of a format and takes all that follows it as one value.
func (p *pass) inlineData(j int) int {
	k := p.peek(j)
	end := k
	for end < len(p.s) && inName[p.s[end]] {
		end++
	}
	if w := Lookup(p.s[k:end]); end == k || w == KwValues || p.sawSelect && w != NoWord {
		return j
	}
	start := skipBlanks(p.s, end)
	if p.sawSelect && start < len(p.s) && Lookup(p.s[start:nameEnd(p.s, start)]) != NoWord {
		return j // more clauses
	}
	p.bare(k)
	if k = start; k == len(p.s) || p.s[k] == ';' {
		return end
	}
	p.res.Flags |= HasInlineData
	p.literal(k, len(p.s), Opaque)
	return len(p.s)
}
