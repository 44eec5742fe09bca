package lex

import "math/bits"

// comment reads what opens with /* at i: a comment, a hint, or code that MySQL runs.
func (p *pass) comment(i int) int {
	s := p.s
	if j := p.codeAt(i); j > 0 {
		p.code++
		return j
	}
	if i+2 < len(s) && s[i+2] == '+' {
		end := hintEnd(s, i)
		p.hintText(i+3, end)
		if end >= len(s) {
			p.res.Flags |= OpenComment
			return len(s)
		}
		return end + 2
	}
	return p.skipComment(i)
}

// hintEnd is where the hint at i closes. Hints do not nest.
func hintEnd(s string, i int) int {
	end := find(s, i+3, '*', '*')
	for end < len(s) && !(end+1 < len(s) && s[end+1] == '/') {
		end = find(s, end+1, '*', '*')
	}
	return end
}

// hashComment says that the # at i opens a comment. Where the dialect is not known, PostgreSQL's operators do not.
func (p *pass) hashComment(i int) bool { return hashComment(p.s, p.rules, i) }

func hashComment(s string, rules rule, i int) bool {
	if rules&ruleHash == 0 {
		return false
	}
	if rules&ruleGuess == 0 || i+1 >= len(s) {
		return true
	}
	c := s[i+1]
	return c != '>' && c != '-' && c != '#'
}

// codeAt says where the code begins if the comment at i is one that the dialect runs: /*! x */, MariaDB's /*M! x */,
// TiDB's /*T![feature] x */. It is 0 for any other.
func (p *pass) codeAt(i int) int {
	s := p.s
	if i+2 >= len(s) || p.rules&ruleVersioned == 0 {
		return 0
	}
	if s[i+2] == '!' {
		return p.versioned(i + 3)
	}
	if i+3 < len(s) && s[i+3] == '!' {
		switch {
		case s[i+2] == 'M':
			return p.versioned(i + 4)
		case s[i+2] == 'T' && p.rules&ruleTiDBFeature != 0:
			return skipFeature(s, i+4)
		}
	}
	return 0
}

// versioned skips a version number. Where the dialect is not known, only one makes code of a comment.
func (p *pass) versioned(i int) int {
	j := i
	for j < len(p.s) && j < i+6 && class[p.s[j]] == cDigit {
		j++
	}
	if j == i && p.rules&ruleGuess != 0 {
		return 0
	}
	return j
}

func skipFeature(s string, i int) int {
	if i < len(s) && s[i] == '[' {
		if j := find(s, i, ']', '\n'); j < len(s) && s[j] == ']' {
			return j + 1
		}
	}
	return i
}

// skipComment returns the end of the comment at i. Where comments nest and one never ends, the first end counts, and
// nesting is given up for the rest of the text, so that broken text stays linear.
func (p *pass) skipComment(i int) int {
	s := p.s
	first, depth := 0, 1
	for j := i + 2; j < len(s); {
		j = find(s, j, '*', '/')
		if j+1 >= len(s) {
			break
		}
		switch {
		case s[j] == '*' && s[j+1] == '/':
			j += 2
			depth--
			if p.flat || depth == 0 {
				return j
			}
			if first == 0 {
				first = j
			}
		case !p.flat && s[j] == '/' && s[j+1] == '*':
			j += 2
			depth++
		default:
			j++
		}
	}
	if first > 0 {
		p.flat = true
		return first
	}
	p.res.Flags |= OpenComment
	return len(s)
}

// peek is the first byte at or behind i that is neither blank nor comment. It looks at most at a few comments.
func (p *pass) peek(i int) int {
	s := p.s
	flags, flat, code := p.res.Flags, p.flat, p.code
	for n := 0; i < len(s) && n < 8; {
		switch {
		case class[s[i]] == cSpace:
			i++
		case s[i] == '/' && i+1 < len(s) && s[i+1] == '*':
			n++
			if j := p.codeAt(i); j > 0 {
				code++
				i = j
			} else if i+2 < len(s) && s[i+2] == '+' {
				i = min(hintEnd(s, i)+2, len(s))
			} else {
				i = p.skipComment(i)
			}
		case s[i] == '*' && i+1 < len(s) && s[i+1] == '/' && code > 0:
			code--
			i += 2
		case s[i] == '-' && i+1 < len(s) && s[i+1] == '-' && (p.rules&ruleDashBlank == 0 || i+2 >= len(s) || s[i+2] <= ' '):
			i = lineEnd(s, i+2)
			n++
		case s[i] == '#' && p.hashComment(i):
			i = lineEnd(s, i+1)
			n++
		default:
			p.res.Flags, p.flat = flags, flat
			return i
		}
	}
	p.res.Flags, p.flat = flags, flat
	return i
}

// hintText hashes an optimizer hint: words folded, literals left out, blanks ignored.
func (p *pass) hintText(i, end int) {
	s := p.s[:end]
	h := p.hintA
	if h == 0 {
		h = laneA
	}
	add := func(x uint64) {
		hi, lo := bits.Mul64(h^x, laneB)
		h = hi ^ lo ^ x
	}
	for i < end {
		switch c := s[i]; class[c] {
		case cSpace:
			i++
		case cWord, cDollar:
			j := i + 1
			for j < end && inName[s[j]] {
				j++
			}
			for k := i; k < j; k += 8 {
				add(lower8(load8(s, k, j-k)) ^ tagWord)
			}
			add(tagEnd)
			i = j
		case cDigit:
			for i < end && (inName[s[i]] || s[i] == '.') {
				i++
			}
			add(tagLiteral)
		case cQuote, cDouble:
			i = min(find(s, i+1, c, c)+1, end)
			add(tagLiteral)
		default:
			add(uint64(c) ^ tagOp)
			i++
		}
	}
	p.hintA = h
	p.res.Flags |= HasHint
}
