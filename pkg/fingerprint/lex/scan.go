package lex

import "strings"

// scan is the loop over the text.
func (p *pass) scan() {
	s := p.s
	i := 0
	if len(s) >= 3 && s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf {
		i = 3 // a byte order mark
	}
	for i < len(s) {
		c := s[i]
		switch class[c] {
		case cSpace:
			i++
			for i+8 <= len(s) && word8(s, i) == ' '*ones {
				i += 8
			}
			for i < len(s) && s[i] == ' ' {
				i++
			}
		case cWord:
			i = p.bare(i)
		case cDigit:
			i = p.number(i)
		case cQuote:
			i = p.text(i, i, '\'', p.rules&ruleBackslash != 0)
		case cDouble:
			i = p.double(i)
		case cBack:
			i = p.quoted(i, '`')
		case cComma:
			p.comma(i)
			i++
			if p.lists > 0 {
				i = p.repeated(i)
			}
		case cOpen:
			p.open(i)
			i++
		case cClose:
			p.close(i)
			i++
		case cDot:
			i = p.dot(i)
		case cSemi:
			p.semi(i)
			i++
			if p.copyIn {
				i = p.copied(i)
			}
		case cDollar:
			i = p.dollar(i)
		case cBracket:
			i = p.bracket(i)
		case cOp:
			i = p.operator(i)
		default:
			p.control(i)
			i++
		}
	}
	p.finish()
}

// copied takes the rows behind COPY .. FROM STDIN, which a dump ends with a line of a backslash and a dot, as one value.
func (p *pass) copied(i int) int {
	p.copyIn = false
	s := p.s
	start := i
	for start < len(s) && (s[start] == ' ' || s[start] == '\r') {
		start++
	}
	if start >= len(s) || s[start] != '\n' {
		return i // what follows on the line is a statement
	}
	end, next := len(s), len(s)
	if k := strings.Index(s[start:], "\n\\."); k >= 0 {
		end, next = start+k, start+k+3
	}
	if start = skipBlanks(s, start); start >= end {
		return next
	}
	p.res.Flags |= HasInlineData
	p.literal(start, end, Opaque)
	p.semi(p.semiAt) // the rows are over: a statement may follow
	return next
}

// dot is either part of a name or the start of a number.
func (p *pass) dot(i int) int {
	s := p.s
	if i+1 < len(s) && class[s[i+1]] == cDigit && (p.prev == pLiteral || !endsOperand[p.prev] && p.prev != pDot) {
		return p.number(i)
	}
	if p.pend != 0 {
		p.settle(false, false)
	}
	p.mix('.', tagOp)
	p.tokens++
	if p.out != nil {
		p.out.punct(p, '.', i)
	}
	p.prev = pDot
	return i + 1
}

func (p *pass) bracket(i int) int {
	s := p.s
	switch s[i] {
	case '{':
		if p.rules&ruleBraceParam != 0 && !endsOperand[p.prev] {
			if end := braceParam(s, i); end > 0 {
				p.literal(i, end, Param)
				return end
			}
		}
		p.open(i)
	case '[':
		p.open(i)
	default:
		p.close(i)
	}
	return i + 1
}

// braceParam finds the end of {name:Type}.
func braceParam(s string, i int) int {
	j := i + 1
	for j < len(s) && inName[s[j]] {
		j++
	}
	if j == i+1 || j >= len(s) || s[j] != ':' {
		return 0
	}
	depth := 0
	for j++; j < len(s) && j-i < 256; j++ {
		switch c := s[j]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '}' && depth == 0:
			return j + 1
		case inName[c] || c == ' ' || c == ',':
		default:
			return 0
		}
	}
	return 0
}

// dollar is a parameter, a dollar-quoted string, a variable or an operator.
func (p *pass) dollar(i int) int {
	s := p.s
	j := i + 1
	if j < len(s) && class[s[j]] == cDigit {
		for j < len(s) && class[s[j]] == cDigit {
			j++
		}
		p.literal(i, j, Param)
		return j
	}
	if p.rules&ruleBraceVar != 0 && j < len(s) && s[j] == '{' {
		for k := j; k < len(s) && k-j < 256; k++ {
			if s[k] == '}' {
				p.exactName(i, k+1)
				return k + 1
			}
			if s[k] == '\n' || s[k] == '\'' {
				break
			}
		}
	}
	if p.rules&ruleDollar != 0 {
		for j < len(s) && (class[s[j]] == cWord || class[s[j]] == cDigit) {
			j++
		}
		if j < len(s) && s[j] == '$' {
			return p.dollarText(i, j+1)
		}
		j = i + 1
	}
	if j < len(s) && inName[s[j]] && s[j] != '$' || p.rules&ruleDoubleString != 0 {
		if p.rules&ruleNamedDollar != 0 && !endsOperand[p.prev] {
			end := nameEnd(s, j)
			p.literal(i, end, Param)
			return end
		}
		return p.bare(i)
	}
	p.op(i, i+1, pOp)
	return i + 1
}

// dollarText reads $tag$ .. $tag$; the opening tag is s[i:body].
func (p *pass) dollarText(i, body int) int {
	s := p.s
	tag := s[i:body]
	for k := body; k < len(s); {
		k = find(s, k, '$', '$')
		if len(s)-k < len(tag) {
			break
		}
		if s[k:k+len(tag)] == tag {
			p.literal(i, k+len(tag), String)
			return k + len(tag)
		}
		k++
	}
	p.res.Flags |= OpenLiteral
	p.literal(i, len(s), String)
	return len(s)
}

// exactName emits a name that is kept byte by byte.
func (p *pass) exactName(i, j int) {
	if p.pend != 0 {
		p.settle(false, false)
	}
	if p.verbState == 0 {
		p.verbState = 2
	}
	p.typeNext = false
	p.mix(uint64(j-i), tagQuoted)
	for k := i; k < j; k += 8 {
		p.mix(load8(p.s, k, j-k), tagMore)
	}
	p.tokens++
	if o := p.out; o != nil {
		if o.doToken {
			o.token(Token{Off: uint32(i), End: uint32(j), Kind: Bare})
		}
		if o.doCanon {
			o.gap(p, Bare, pName)
			o.canon = appendName(o.canon, p.s[i:j], false)
		}
	}
	p.prev = pName
}

// operator reads an operator, a comment or a parameter.
func (p *pass) operator(i int) int {
	s := p.s
	c := s[i]
	var c1, c2 byte
	if i+1 < len(s) {
		c1 = s[i+1]
	}
	if i+2 < len(s) {
		c2 = s[i+2]
	}
	n, code := 1, pOp
	switch c {
	case '-':
		if c1 == '-' && (p.rules&ruleDashBlank == 0 || i+2 >= len(s) || c2 <= ' ') {
			return lineEnd(s, i+2)
		}
		if c1 == '>' {
			n = 2
			if c2 == '>' {
				n = 3
			}
			break
		}
		p.sign(i)
		return i + 1
	case '+':
		p.sign(i)
		return i + 1
	case '/':
		if c1 == '*' {
			return p.comment(i)
		}
	case '*':
		if c1 == '/' && p.code > 0 {
			p.code--
			return i + 2
		}
	case '#':
		if p.hashComment(i) {
			return lineEnd(s, i+1)
		}
		switch {
		case c1 == '>' && c2 == '>':
			n = 3
		case c1 == '>' || c1 == '-' || c1 == '#':
			n = 2
		}
	case '<':
		switch {
		case c1 == '=' && c2 == '>':
			n = 3
		case c1 == '=' || c1 == '>' || c1 == '<' || c1 == '@':
			n = 2
		}
	case '>':
		if c1 == '=' || c1 == '>' {
			n = 2
		}
	case '=':
		if c1 == '=' || c1 == '>' {
			n = 2
		}
		if n == 1 && p.verb == KwSet && p.rules&ruleRawSet != 0 && p.depth == 0 {
			p.op(i, i+1, pOp)
			return p.rawValue(i + 1)
		}
	case '!':
		switch {
		case c1 == '~' && c2 == '*':
			n = 3
		case c1 == '=' || c1 == '~':
			n = 2
		}
	case '|':
		if c1 == '|' {
			n = 2
		}
	case '&':
		if c1 == '&' {
			n = 2
		}
	case '~':
		if c1 == '*' {
			n = 2
		}
	case ':':
		switch {
		case c1 == ':':
			n, code = 2, pCast
		case c1 == '=':
			n = 2
		case !endsOperand[p.prev] && inName[c1]:
			j := i + 2
			for j < len(s) && inName[s[j]] {
				j++
			}
			p.literal(i, j, Param)
			return j
		}
	case '?':
		if p.rules&ruleQuestionOp == 0 || !endsOperand[p.prev] {
			p.literal(i, i+1, Param)
			return i + 1
		}
		if c1 == '|' || c1 == '&' {
			n = 2
		}
	case '@':
		code = pAt
		switch c1 {
		case '@':
			n = 2
		case '>', '?':
			n, code = 2, pOp
		}
	}
	p.op(i, i+n, code)
	return i + n
}

// rawValue takes the text up to the end of the statement as one value.
func (p *pass) rawValue(i int) int {
	s := p.s
	end := find(s, i, ';', ';')
	for i < end && class[s[i]] == cSpace {
		i++
	}
	last := end
	for last > i && class[s[last-1]] == cSpace {
		last--
	}
	if last > i {
		p.literal(i, last, Opaque)
	}
	return end
}

func lineEnd(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	if k := find(s, i, '\n', '\n'); k < len(s) {
		return k + 1
	}
	return len(s)
}
