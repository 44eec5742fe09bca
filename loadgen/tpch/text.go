package tpch

import "strings"

// poolBytes is large enough that comments rarely repeat in a file and small enough to be made in milliseconds.
const poolBytes = 1 << 20

// text is a pool of TPC-H pseudo text. Comments are cut out of it at random places, as dbgen does, which costs no
// allocation for each row and gives the words that Q13 looks for ("special … requests") at a natural rate.
type text struct{ pool string }

var (
	nouns = strings.Fields("foxes ideas theodolites beans instructions dependencies excuses platelets asymptotes courts dolphins " +
		"multipliers sauternes warthogs frets dinos attainments somas braids players frays warhorses dugouts notornis " +
		"epitaphs pearls tithes waters orbits gifts sheaves depths sentiments decoys realms pains grouches escapades packages " +
		"requests accounts deposits packages requests accounts deposits")
	verbs = strings.Fields("sleep wake are cajole haggle nag use boost affix detect integrate maintain nod was lose sublate solve " +
		"thrash promise engage hinder print x-ray breach eat grow impress mold poach serve run dazzle snooze doze unwind " +
		"kindle play hang believe doubt")
	adjectives = strings.Fields("furious sly careful blithe quick fluffy slow quiet ruthless thin close dogged daring brave stealthy " +
		"permanent enticing idle busy regular final ironic even bold silent special pending unusual express special pending unusual express")
	adverbs = strings.Fields("sometimes always never furiously slyly carefully blithely quickly fluffily slowly quietly ruthlessly " +
		"thinly closely doggedly daringly bravely stealthily permanently enticingly idly busily regularly finally ironically " +
		"evenly boldly silently")
	prepositions = strings.Fields("about above according_to across after against along among around at atop before behind beneath " +
		"beside besides between beyond by despite during except for from in_place_of inside instead_of into near of on outside " +
		"over past since through throughout to toward under until up upon without with within")
	terminators = []string{".", ";", ":", "?", "!", "--"}
)

func newText(seed uint64) text {
	r := rowRNG(seed, "text", 0)
	var b strings.Builder
	b.Grow(poolBytes + 256)
	for b.Len() < poolBytes {
		for i := r.between(1, 2); i > 0; i-- {
			b.WriteString(pick(&r, adjectives))
			b.WriteByte(' ')
		}
		b.WriteString(pick(&r, nouns))
		b.WriteByte(' ')
		b.WriteString(pick(&r, verbs))
		b.WriteByte(' ')
		switch r.below(3) {
		case 0:
			b.WriteString(pick(&r, adverbs))
		case 1:
			b.WriteString(strings.ReplaceAll(pick(&r, prepositions), "_", " "))
			b.WriteString(" the ")
			b.WriteString(pick(&r, adjectives))
			b.WriteByte(' ')
			b.WriteString(pick(&r, nouns))
		default:
			b.WriteString(pick(&r, adjectives))
			b.WriteByte(' ')
			b.WriteString(pick(&r, nouns))
		}
		b.WriteString(pick(&r, terminators))
		b.WriteByte(' ')
	}
	return text{pool: b.String()[:poolBytes]}
}

// comment cuts a text of lo to hi bytes.
func (t text) comment(r *rng, lo, hi int64) string {
	n := r.between(lo, hi)
	at := r.below(int64(len(t.pool)) - n)
	return t.pool[at : at+n]
}

const alphanumerics = "0123456789abcdefghijklmnopqrstuvwxyz,. ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// address is a random string of lo to hi characters, TPC-H's "v-string".
func address(r *rng, lo, hi int64) string {
	b := make([]byte, r.between(lo, hi))
	for i := range b {
		b[i] = alphanumerics[r.below(int64(len(alphanumerics)))]
	}
	return string(b)
}

// numbered is a name such as Customer#000000042.
func numbered(prefix string, key int64) string {
	b := append(make([]byte, 0, len(prefix)+9), prefix...)
	return string(zeroPadded(b, key, 9))
}

// phone is CC-LLL-LLL-LLLL, where CC is the nation's key plus 10: Q22 reads the country off it.
func phone(r *rng, nation int64) string {
	b := zeroPadded(make([]byte, 0, 15), nation+10, 2)
	for _, part := range [...]struct{ lo, hi, width int64 }{{100, 999, 3}, {100, 999, 3}, {1000, 9999, 4}} {
		b = zeroPadded(append(b, '-'), r.between(part.lo, part.hi), int(part.width))
	}
	return string(b)
}

func zeroPadded(b []byte, n int64, width int) []byte {
	start := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := start + width - 1; i >= start && n > 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
