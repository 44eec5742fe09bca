package lex

import "math/bits"

// comment reads what opens with /* at i: a comment, a hint, or code that MySQL runs.
func (p *pass) comment(i int) int {
	s := p.s
	if i+2 < len(s) {
		switch s[i+2] {
		case '!':
			if j := p.versioned(i + 3); j > 0 {
				p.code++
				return j
			}
		case 'M':
			if p.rules&ruleVersioned != 0 && i+3 < len(s) && s[i+3] == '!' {
				if j := p.versioned(i + 4); j > 0 {
					p.code++
					return j
				}
			}
		case 'T':
			if p.rules&ruleTiDBFeature != 0 && i+3 < len(s) && s[i+3] == '!' {
				p.code++
				return skipFeature(s, i+4)
			}
		case '+':
			end := find(s, i+3, '*', '*')
			for end < len(s) && !(end+1 < len(s) && s[end+1] == '/') {
				end = find(s, end+1, '*', '*')
			}
			p.hintText(i+3, end)
			if end >= len(s) {
				p.res.Flags |= OpenComment
				return len(s)
			}
			return end + 2
		}
	}
	return p.skipComment(i)
}

// versioned says where the code of /*! begins, or 0 if this dialect takes it for a comment.
func (p *pass) versioned(i int) int {
	if p.rules&ruleVersioned == 0 {
		return 0
	}
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
	flags, flat := p.res.Flags, p.flat
	for n := 0; i < len(s) && n < 8; {
		switch {
		case class[s[i]] == cSpace:
			i++
		case s[i] == '/' && i+1 < len(s) && s[i+1] == '*' && !(i+2 < len(s) && s[i+2] == '!' && p.rules&ruleVersioned != 0):
			i = p.skipComment(i)
			n++
		case s[i] == '-' && i+1 < len(s) && s[i+1] == '-' && (p.rules&ruleDashBlank == 0 || i+2 >= len(s) || s[i+2] <= ' '):
			i = lineEnd(s, i+2)
			n++
		case s[i] == '#' && p.rules&ruleHash != 0 && p.rules&ruleGuess == 0:
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
