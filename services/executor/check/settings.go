package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settings sends a statement with each variant: an engine refuses what it does not know only when it gets it.
func settings(ctx context.Context, p *probe) (string, error) {
	names := slices.Sorted(maps.Keys(p.opts.Variants))
	var refused []error
	for _, name := range names {
		v := p.opts.Variants[name]
		q := p.query("SELECT 1")
		q.Settings, q.MaxMemoryBytes = v.Settings, v.MaxMemory
		if _, err := p.all(ctx, q); err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(refused) == 0 {
		return "taken: " + strings.Join(names, ", "), nil
	}
	texts := make([]string, len(refused)) // joined as they are they would be lines
	for i, err := range refused {
		texts[i] = err.Error()
	}
	return "", errors.New(strings.Join(texts, "; "))
}
