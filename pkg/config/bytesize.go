package config

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// ByteSize is a number of bytes, written as "50 GB" (powers of 1000), "1 MiB" (powers of 1024) or a bare number.
type ByteSize int64

// The units that ByteSize reads and writes.
const (
	Byte ByteSize = 1
	KB            = 1000 * Byte
	MB            = 1000 * KB
	GB            = 1000 * MB
	TB            = 1000 * GB
	PB            = 1000 * TB
	KiB           = 1024 * Byte
	MiB           = 1024 * KiB
	GiB           = 1024 * MiB
	TiB           = 1024 * GiB
	PiB           = 1024 * TiB
)

// sizeUnits is ordered so that String finds the unit that leaves the smallest number first.
var sizeUnits = []struct {
	name string
	size ByteSize
}{
	{"PiB", PiB},
	{"PB", PB},
	{"TiB", TiB},
	{"TB", TB},
	{"GiB", GiB},
	{"GB", GB},
	{"MiB", MiB},
	{"MB", MB},
	{"KiB", KiB},
	{"KB", KB},
	{"B", Byte},
}

// ParseByteSize reads a size. Upper and lower case, and a space before the unit, make no difference; a fraction must
// come to whole bytes.
func ParseByteSize(text string) (ByteSize, error) {
	s := strings.TrimSpace(text)
	end := strings.LastIndexAny(s, "0123456789.") + 1
	number, unit := s[:end], strings.TrimSpace(s[end:])
	size, err := sizeOf(unit)
	if err != nil {
		return 0, err
	}
	if number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is no size: write for example 512 MiB or 50 GB", text)
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, fmt.Errorf("%q is no size: write for example 512 MiB or 50 GB", text)
	}
	value.Mul(value, new(big.Rat).SetInt64(int64(size)))
	switch {
	case !value.IsInt():
		return 0, fmt.Errorf("%q is not a whole number of bytes", text)
	case !value.Num().IsInt64():
		return 0, fmt.Errorf("%q is more than 64 bits hold", text)
	}
	return ByteSize(value.Num().Int64()), nil
}

func sizeOf(unit string) (ByteSize, error) {
	if unit == "" {
		return Byte, nil
	}
	for _, u := range sizeUnits {
		if strings.EqualFold(unit, u.name) {
			return u.size, nil
		}
	}
	return 0, fmt.Errorf("unknown unit %q: use B, KB, MB, GB, TB, PB or KiB, MiB, GiB, TiB, PiB", unit)
}

// String is exact: the largest unit that divides the size, so that parsing it gives the same number.
func (b ByteSize) String() string {
	for _, u := range sizeUnits {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + " " + u.name
		}
	}
	return "0 B"
}

// MarshalText writes what String does.
func (b ByteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads what ParseByteSize does.
func (b *ByteSize) UnmarshalText(text []byte) error {
	size, err := ParseByteSize(string(text))
	if err != nil {
		return err
	}
	*b = size
	return nil
}
