package trino

import (
	"bytes"
	"encoding/json"
	"io"
)

// pageOf reads an answer to a statement. Its rows are left as they came until each is asked for.
func pageOf(out *results) func(io.Reader) error {
	return func(body io.Reader) error {
		text, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		rest, data, err := split(text)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(rest, out); err != nil {
			return unreadable(err)
		}
		out.Data, err = newTable(data)
		return err
	}
}

// split takes the rows out of an answer.
func split(text []byte) (rest, data []byte, err error) {
	s := scanner{text: text}
	if err := s.take('{'); err != nil {
		return nil, nil, err
	}
	for first := true; ; first = false {
		more, err := s.more(first, '}')
		if err != nil || !more {
			return text, nil, err
		}
		name, err := s.str()
		if err == nil {
			err = s.take(':')
		}
		if err != nil {
			return nil, nil, err
		}
		s.peek()
		begin := s.at
		value, err := s.skip()
		if err != nil {
			return nil, nil, err
		}
		if name == "data" {
			return bytes.Join([][]byte{text[:begin], []byte("null"), text[s.at:]}, nil), value, nil
		}
	}
}

// table is the rows of one page.
type table struct {
	scan  scanner
	first bool
	left  bool // there is a row that has not been moved to
	open  bool // the row that was moved to has not been read
}

func newTable(text []byte) (*table, error) {
	t := &table{scan: scanner{text: text}, first: true}
	if text == nil || t.scan.null() {
		return t, nil
	}
	if err := t.scan.take('['); err != nil {
		return nil, err
	}
	return t, t.look()
}

// look finds out whether there is another row.
func (t *table) look() (err error) {
	t.left, err = t.scan.more(t.first, ']')
	t.first = false
	return err
}

// empty says that no row is left to move to.
func (t *table) empty() bool { return t == nil || !t.left && !t.open }

// next moves to the next row. A row that nobody has read is skipped.
func (t *table) next() (bool, error) {
	if t == nil {
		return false, nil
	}
	if t.open {
		t.open = false
		if _, err := t.scan.skip(); err != nil {
			return false, err
		}
		if err := t.look(); err != nil {
			return false, err
		}
	}
	t.open = t.left
	return t.left, nil
}

// values reads the row that was moved to.
func (t *table) values(types []signature) ([]any, error) {
	if !t.open {
		return nil, errNoRow
	}
	t.open, t.left = false, false
	if err := t.scan.take('['); err != nil {
		return nil, err
	}
	out := make([]any, len(types))
	for i := 0; ; i++ {
		more, err := t.scan.more(i == 0, ']')
		switch {
		case err != nil:
			return nil, err
		case more != (i < len(types)):
			return nil, errRagged
		case !more:
			return out, t.look()
		}
		if out[i], err = types[i].value(&t.scan); err != nil {
			return nil, err
		}
	}
}
