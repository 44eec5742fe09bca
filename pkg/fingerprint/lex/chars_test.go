package lex

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotInName8AgreesWithTable(t *testing.T) {
	for c := range 256 {
		for shift := 0; shift < 64; shift += 8 {
			marked := notInName8(uint64(c)<<shift|^(uint64(0xff)<<shift)&('a'*ones))>>shift&0x80 != 0
			require.Equal(t, !inName[c], marked, "byte %#x at bit %d", c, shift)
		}
	}
}

func TestEveryKeywordIsFound(t *testing.T) {
	for w := NoWord + 1; w < wordCount; w++ {
		require.Equal(t, w, Lookup(words[w].text))
		require.Equal(t, words[w].text, w.String())
	}
	for _, name := range []string{"", "x", "selectt", "selec", "orders", "averyveryverylongname"} {
		require.Equal(t, NoWord, Lookup(name))
	}
}
