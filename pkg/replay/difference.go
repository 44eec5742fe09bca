package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pointsman/pointsman/pkg/event"
)

// differences lists where the JSON of two values differs, at most so many places, by their paths.
func differences(a, b any, most int) []string {
	x, errX := tree(a)
	y, errY := tree(b)
	if errX != nil || errY != nil {
		return []string{"one of the two can't be written as JSON"}
	}
	d := differ{most: most}
	d.walk("", x, y)
	return d.out
}

func tree(v any) (out any, err error) {
	data, err := event.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // 64-bit integers must not look equal where they are not
	err = dec.Decode(&out)
	return out, err
}

type differ struct {
	out  []string
	most int
}

func (d *differ) walk(path string, a, b any) {
	if len(d.out) >= d.most {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			names := slices.Sorted(maps.Keys(x))
			for name := range y {
				if _, ok := x[name]; !ok {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			for _, name := range names {
				d.walk(join(path, name), x[name], y[name])
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				d.walk(path+"["+strconv.Itoa(i)+"]", x[i], y[i])
			}
			return
		}
	}
	if s, t := short(a), short(b); s != t {
		d.out = append(d.out, fmt.Sprintf("%s was %s and is %s", path, s, t))
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// short writes a value in at most a line.
func short(v any) string {
	if v == nil {
		return "absent"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
