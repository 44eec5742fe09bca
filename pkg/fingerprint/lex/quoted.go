package lex

import "unicode/utf8"

// quoted reads a name in quotes that opens at i.
func (p *pass) quoted(i int, quote byte) int {
	s := p.s
	backslash := p.rules&ruleBackslash != 0 && p.rules&ruleCaseBare != 0 // ClickHouse alone escapes in names
	esc := quote
	if backslash {
		esc = '\\'
	}
	j := i + 1
	simple := true
	for {
		j = find(s, j, quote, esc)
		if j >= len(s) {
			p.res.Flags |= OpenLiteral
			p.literal(i, len(s), Opaque)
			return len(s)
		}
		if s[j] == quote && !(j+1 < len(s) && s[j+1] == quote) {
			break
		}
		simple = false
		j = min(j+2, len(s))
	}
	p.quotedName(i, j, quote, simple)
	return j + 1
}

// quotedName emits the name s[i+1:j]. A name that reads the same without quotes is the same name.
func (p *pass) quotedName(i, j int, quote byte, simple bool) {
	s := p.s
	body := s[i+1 : j]
	if p.verbState == 0 {
		p.verbState = 2
	}
	plain, upper := simple && len(body) > 0 && class[body[0]] != cDigit && body[0] != '$', false
	dollars := p.rules&(ruleDoubleString|ruleNumbered) != 0 // a bare name may hold a dollar sign
	for k := 0; plain && k < len(body); k++ {
		c := body[k]
		plain = inName[c] && (c != '$' || dollars)
		upper = upper || c >= 'A' && c <= 'Z'
	}
	fold := p.rules&ruleCaseQuoted == 0
	if plain && upper && !fold && p.rules&ruleCaseBare == 0 {
		plain = false
	}
	if plain && p.prev != pDot && len(body) <= 16 && Lookup(body) != NoWord {
		if k := p.peek(j + 1); k >= len(s) || s[k] != '.' {
			plain = false
		}
	}
	if p.pend != 0 {
		p.settle(false, false)
	}
	p.typeNext = false
	if plain {
		w1 := load8(s, i+1, len(body))
		var w2 uint64
		if len(body) > 8 {
			w2 = load8(s, i+9, len(body)-8)
		}
		if p.rules&ruleCaseBare == 0 {
			w1, w2 = lower8(w1), lower8(w2)
		}
		p.hashWord(i+1, j, w1, w2)
	} else {
		p.hashQuoted(body, quote, fold)
	}
	p.tokens++
	if o := p.out; o != nil {
		if o.doToken {
			o.token(Token{Off: uint32(i), End: uint32(j) + 1, Kind: Quoted})
		}
		if o.doCanon {
			o.gap(p, Quoted, pName)
			if plain {
				o.canon = appendName(o.canon, body, fold)
			} else {
				o.canon = p.appendQuoted(o.canon, body, quote, fold)
			}
		}
	}
	p.prev = pName
}

// unquote walks over the bytes of a quoted name's body, doubled quotes made single.
func unquote(body string, quote byte, k int) (c byte, next int) {
	c = body[k]
	if c == quote && k+1 < len(body) && body[k+1] == quote {
		return c, k + 2
	}
	return c, k + 1
}

func (p *pass) hashQuoted(body string, quote byte, fold bool) {
	var w, n uint64
	p.mix(1, tagQuoted)
	for k := 0; k < len(body); {
		var c byte
		c, k = unquote(body, quote, k)
		if fold && c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		w |= uint64(c) << (n % 8 * 8)
		if n++; n%8 == 0 {
			p.mix(w, tagMore)
			w = 0
		}
	}
	p.mix(w, tagMore)
	p.mix(n, tagQuoted)
}

// appendQuoted prints a name in the dialect's own quotes.
func (p *pass) appendQuoted(dst []byte, body string, quote byte, fold bool) []byte {
	own := byte('"')
	if p.rules&ruleBackquote != 0 {
		own = '`'
	}
	escapes := p.rules&ruleBackslash != 0 && p.rules&ruleCaseBare != 0
	dst = append(dst, own)
	for k := 0; k < len(body); {
		c := body[k]
		switch {
		case escapes && c == '\\' && k+1 < len(body) && body[k+1] < utf8.RuneSelf:
			dst = append(dst, c, body[k+1])
			k += 2
			continue
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(body[k:])
			dst = utf8.AppendRune(dst, r)
			k += n
			continue
		}
		c, k = unquote(body, quote, k)
		if fold && c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c == own {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return append(dst, own)
}

// What double quotes hold in a text of unknown dialect.
const (
	doubleName   uint8 = 1
	doubleString uint8 = 2
)

// guessDouble decides once per text, by what stands around its double quotes: a back quote anywhere makes them strings;
// a dot, FROM, JOIN, INTO, TABLE, UPDATE or BY before them, or a dot or a comparison behind them, makes them names. So does
// AS or SELECT, unless others stand behind a comparison or an opening bracket: MySQL selects strings and takes them as
// aliases; and behind SELECT only if there is something to select it from. Without any such sign they are strings, since a name that is lost costs less than a value that leaks.
func (p *pass) guessDouble() uint8 {
	if p.guessed == 0 {
		p.guessed = p.lookAtDoubles()
	}
	return p.guessed
}

// doubtfulName says that what stands in double quotes from i on would be an odd name: it holds what texts and addresses
// are made of, or is long. Where the dialect is not known it counts as a string, even beside names.
func doubtfulName(s string, i int) bool {
	for k := i; k < len(s) && s[k] != '"'; k++ {
		switch c := s[k]; c {
		case '\'', ';', '@', '{', '\\':
			return true
		default:
			if c < ' ' || k-i >= 128 {
				return true
			}
		}
	}
	return false
}

func (p *pass) lookAtDoubles() uint8 {
	s := p.s
	guess, alias, column, value := doubleString, false, false, false
	from := false
	named := false // what was read last says that a name comes
	operand := false
	var word Word
	for i := 0; i < len(s); {
		if next := p.blank(i); next > i {
			i = next
			continue
		}
		switch c := s[i]; class[c] {
		case cBack:
			return doubleString
		case cWord:
			end := nameEnd(s, i)
			before := word
			word = Lookup(s[i:end])
			from = from || word == KwFrom
			named = namesNext(word, before)
			operand = word == KwLike || word == KwIlike || word == KwBetween || word == KwThen || word == KwElse
			i = end
			continue
		case cQuote:
			i = find(s, i+1, '\'', '\'')
			named, operand = false, false
		case cDouble:
			end := find(s, i+1, '"', '"')
			switch {
			case end >= len(s):
			case named && word != KwAs && word != KwSelect || p.namedBehind(end+1):
				guess = doubleName
			case named && word == KwAs:
				alias = true
			case named && nameEnd(s, i+1) == end:
				column = true
			}
			value = value || operand
			i, named, operand = end, false, false
		default:
			named = c == '.'
			operand = c == '=' || c == '<' || c == '>' || c == '('
		}
		i++
	}
	if !value && (alias || column && from) {
		return doubleName
	}
	return guess
}

// blank is the end of the space or comment at i, or i.
func (p *pass) blank(i int) int {
	s := p.s
	switch {
	case class[s[i]] == cSpace:
		return i + 1
	case s[i] == '/' && i+1 < len(s) && s[i+1] == '*':
		for j := find(s, i+2, '*', '*'); j+1 < len(s); j = find(s, j+1, '*', '*') {
			if s[j+1] == '/' {
				return j + 2
			}
		}
		return len(s)
	case s[i] == '-' && i+1 < len(s) && s[i+1] == '-':
		return lineEnd(s, i+2)
	case s[i] == '#' && p.hashComment(i):
		return lineEnd(s, i+1)
	}
	return i
}

// namesNext says that a name comes behind a keyword, and no value: behind BY only if it orders or groups.
func namesNext(w, before Word) bool {
	switch w {
	case KwFrom, KwJoin, KwInto, KwTable, KwUpdate, KwAs, KwSelect:
		return true
	case KwBy:
		return before == KwOrder || before == KwGroup || before == KwPartition
	}
	return false
}

func (p *pass) namedBehind(i int) bool {
	s := p.s
	for i < len(s) {
		next := p.blank(i)
		if next == i {
			break
		}
		i = next
	}
	if i >= len(s) {
		return false
	}
	switch s[i] {
	case '.', '=', '<', '>', '!':
		return true
	}
	return false
}
