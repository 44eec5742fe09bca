package shape

import "github.com/pointsman/pointsman/pkg/fingerprint/lex"

// end is where the statement ends.
func (p *parser) end(i int) int {
	for i < len(p.toks) && p.punct(i) != ';' {
		i++
	}
	return i
}

// command is the statement's first words, at most n, for people and rules.
func (p *parser) command(i, n int) string {
	out := ""
	for k := range n {
		t := p.tok(i + k)
		if t.Kind != lex.Bare || k > 0 && t.Word == lex.NoWord {
			break
		}
		if out != "" {
			out += " "
		}
		out += lower(p.raw(i + k))
	}
	return out
}

// dataset says that the word at i means a table or view in Dremio.
func (p *parser) dataset(i int) bool {
	return (p.d == lex.Dremio || p.d == lex.ANSI || p.d == lex.Auto) && (p.spells(i, "vds") || p.spells(i, "pds")) && p.isName(i+1)
}

// setsServer says that one of the assignments behind SET changes the server: @@global.x, @@persist.x, or GLOBAL x behind a
// comma.
func (p *parser) setsServer(i int) bool {
	for ; i < len(p.toks) && p.punct(i) != ';'; i++ {
		scope := p.word(i) == lex.KwGlobal || p.spells(i, "global") || p.spells(i, "persist") || p.spells(i, "persist_only")
		switch {
		case !scope:
		case p.op(i-1) == "@@" && p.punct(i+1) == '.' && (p.punct(i-2) == ',' || p.word(i-2) == lex.KwSet),
			p.punct(i-1) == ',' && p.isName(i+1):
			return true
		}
	}
	return false
}

// resource says that the word at i is a kind of file that a session of Spark or Hive can be given: ADD JAR path.
func (p *parser) resource(i int) bool {
	if p.tok(i).Kind != lex.Bare || p.punct(i+1) == '.' || p.punct(i+1) == ',' {
		return false
	}
	switch lower(p.raw(i)) {
	case "jar", "jars", "file", "files", "archive", "archives":
		return true
	}
	return false
}
