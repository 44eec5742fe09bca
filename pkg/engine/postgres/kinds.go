package postgres

import (
	"context"
	"fmt"
	"time"
)

// kind is what is known of a type: how it is called and how its text becomes a value.
type kind struct {
	name string
	oid  uint32
	elem *kind // of an array
	read func(text string) any
}

// value is a value's text, read. What is not to be read in its type, such as an infinite date, stays the text.
func (k *kind) value(text string) any {
	switch {
	case k.elem != nil:
		if v, ok := readArray(text, k.elem); ok {
			return v
		}
		return text
	case k.read != nil:
		return k.read(text)
	default:
		return text
	}
}

// builtin are the types whose OIDs never change: the name that SQL gives them, and that of the array of them.
var builtin = []struct {
	oid, array uint32
	name       string
	read       func(string) any
}{
	{16, 1000, "boolean", readBool},
	{17, 1001, "bytea", readBytes},
	{18, 1002, `"char"`, nil},
	{19, 1003, "name", nil},
	{20, 1016, "bigint", readInt},
	{21, 1005, "smallint", readInt},
	{23, 1007, "integer", readInt},
	{25, 1009, "text", nil},
	{26, 1028, "oid", readInt},
	{114, 199, "json", nil},
	{142, 143, "xml", nil},
	{600, 1017, "point", nil},
	{650, 651, "cidr", nil},
	{700, 1021, "real", readFloat},
	{701, 1022, "double precision", readFloat},
	{790, 791, "money", nil},
	{829, 1040, "macaddr", nil},
	{869, 1041, "inet", nil},
	{1042, 1014, "character", nil},
	{1043, 1015, "character varying", nil},
	{1082, 1182, "date", readDate},
	{1083, 1183, "time without time zone", nil},
	{1114, 1115, "timestamp without time zone", readLocal},
	{1184, 1185, "timestamp with time zone", readInstant},
	{1186, 1187, "interval", nil},
	{1266, 1270, "time with time zone", nil},
	{1560, 1561, "bit", nil},
	{1562, 1563, "bit varying", nil},
	{1700, 1231, "numeric", readNumeric},
	{2205, 2210, "regclass", nil},
	{2249, 2287, "record", nil},
	{2278, 0, "void", nil},
	{2950, 2951, "uuid", nil},
	{3802, 3807, "jsonb", nil},
}

var known = func() map[uint32]*kind {
	m := map[uint32]*kind{}
	for _, b := range builtin {
		k := &kind{name: b.name, oid: b.oid, read: b.read}
		m[b.oid] = k
		if b.array != 0 {
			m[b.array] = &kind{name: b.name + "[]", oid: b.array, elem: k}
		}
	}
	return m
}()

// typeName is the type as SQL writes it, with its length or precision.
func (k *kind) typeName(mod int32) string {
	base, tail := k, ""
	if k.elem != nil {
		base, tail = k.elem, "[]"
	}
	if mod < 0 {
		return k.name
	}
	switch base.oid {
	case 1042, 1043: // character(n) and character varying(n)
		return fmt.Sprintf("%s(%d)%s", base.name, mod-4, tail)
	case 1560, 1562:
		return fmt.Sprintf("%s(%d)%s", base.name, mod, tail)
	case 1700:
		scale := ((mod-4)&0x7ff ^ 1024) - 1024 // eleven bits with a sign
		return fmt.Sprintf("numeric(%d,%d)%s", (mod-4)>>16&0xffff, scale, tail)
	case 1083, 1114, 1184, 1266: // "timestamp(3) with time zone"
		for i, c := range base.name {
			if c == ' ' {
				return fmt.Sprintf("%s(%d)%s%s", base.name[:i], mod, base.name[i:], tail)
			}
		}
	}
	return k.name
}

const lookUpWithin = 2 * time.Second

// kindOf knows a type, or asks the server for its name: enumerations, composite types and those of extensions have numbers that
// are the database's own. A type that can't be looked up is read as text all the same.
func (e *Engine) kindOf(oid uint32) *kind {
	if k, ok := known[oid]; ok {
		return k
	}
	if k, ok := e.kinds.Load(oid); ok {
		return k.(*kind)
	}
	ctx, cancel := context.WithTimeout(e.life, lookUpWithin)
	defer cancel()
	var (
		name string
		elem uint32
	)
	err := e.control.QueryRow(ctx, "SELECT format_type(oid, NULL), CASE WHEN typcategory = 'A' AND typdelim = ',' THEN typelem ELSE 0::oid END FROM pg_catalog.pg_type WHERE oid = $1", oid).Scan(&name, &elem)
	if err != nil {
		return &kind{name: fmt.Sprintf("oid %d", oid), oid: oid}
	}
	k := &kind{name: name, oid: oid}
	if elem != 0 {
		k.elem = e.kindOf(elem)
	}
	e.kinds.Store(oid, k)
	return k
}
