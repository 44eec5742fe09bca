package route

import (
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/failure"
	"github.com/pointsman/pointsman/pkg/policy"
)

// failedBefore removes the places of earlier attempts: the whole cluster, or, where it was memory that ran out, those of its lanes
// that have no more of it.
func failedBefore(s *scene, c *candidate) *event.Filtered {
	for _, t := range s.in.Excluded {
		if t.Cluster == c.Cluster && t.Engine == c.Engine && !s.larger(c, t) {
			return removed(FailedBefore)
		}
	}
	return nil
}

// larger reports whether the candidate is a lane with more memory than the one where memory ran out.
func (s *scene) larger(c *candidate, failed event.Target) bool {
	if f := s.in.LastFailure; f == nil || failure.Class(f.Class) != failure.MemoryLimit || c.pool.SignalKey == "" {
		return false
	}
	for i := range s.cands {
		if was := s.cands[i].pool; s.cands[i].Target == failed {
			return was.MaxMemoryPerQuery > 0 && !was.Spills && (c.pool.MaxMemoryPerQuery == 0 || c.pool.MaxMemoryPerQuery > was.MaxMemoryPerQuery)
		}
	}
	return false
}

func permitted(s *scene, c *candidate) *event.Filtered {
	if out(c.pool.Tenants, s.in.Task.Tenant) {
		return removed(TenantNotPermitted, "tenant", s.in.Task.Tenant)
	}
	return nil
}

func laneOpen(s *scene, c *candidate) *event.Filtered {
	t := &s.in.Task
	switch {
	case out(c.pool.LaneTenants, t.Tenant):
		return removed(QueueNotPermitted, "queue", c.Queue, "who", "tenant "+t.Tenant)
	case out(c.pool.LaneUsers, t.User):
		return removed(QueueNotPermitted, "queue", c.Queue, "who", "user "+t.User)
	case out(c.pool.LaneClasses, string(t.SessionClass())):
		class := string(t.SessionClass())
		if class == "" {
			class = "unknown"
		}
		return removed(QueueNotPermitted, "queue", c.Queue, "who", "sessions of class "+class)
	}
	return nil
}

// out reports that a list is given and lacks the word.
func out(list []string, word string) bool { return len(list) > 0 && !slices.Contains(list, word) }

// outFold is out without regard to case.
func outFold(list []string, word string) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(w string) bool { return strings.EqualFold(w, word) })
}

// reachable removes a pool that can't read what the Task asks for. A table that names no catalog is in the Task's, and one of a
// Task that names none may be anywhere.
func reachable(s *scene, c *candidate) *event.Filtered {
	t := &s.in.Task
	if t.Dataset != "" && out(c.pool.Datasets, t.Dataset) {
		return removed(DatasetNotReachable, "dataset", t.Dataset)
	}
	if len(c.pool.Catalogs) == 0 {
		return nil
	}
	if len(s.in.Shape.Tables) == 0 && t.Catalog != "" && outFold(c.pool.Catalogs, t.Catalog) {
		return removed(CatalogNotReachable, "catalog", t.Catalog)
	}
	for i := range s.in.Shape.Tables {
		catalog := s.in.Shape.Tables[i].Catalog
		if catalog == "" {
			catalog = t.Catalog
		}
		if catalog != "" && outFold(c.pool.Catalogs, catalog) {
			return removed(CatalogNotReachable, "catalog", catalog)
		}
	}
	return nil
}

func speaks(s *scene, c *candidate) *event.Filtered {
	d := s.in.Task.Dialect
	if d != "" && !strings.EqualFold(d, "auto") && outFold(c.pool.Dialects, d) {
		return removed(DialectNotSupported, "dialect", d)
	}
	return nil
}

// hasFunctions removes an engine that lacks a function or a feature that the text is known to use.
func hasFunctions(s *scene, c *candidate) *event.Filtered {
	sh := &s.in.Shape
	if c.pool.UDFs != nil {
		for _, f := range sh.UDFs {
			if !slices.ContainsFunc(c.pool.UDFs, func(have string) bool { return strings.EqualFold(have, f) }) {
				return removed(FunctionNotSupported, "function", f)
			}
		}
	}
	for _, lacked := range c.pool.Lacks {
		uses := false
		switch lacked {
		case policy.Windows:
			uses = sh.HasWindow()
		case policy.Recursion:
			uses = sh.Recursive
		case policy.Regex:
			uses = sh.Regex > 0
		case policy.JSON:
			uses = sh.JSON > 0
		}
		if uses {
			return removed(FeatureNotSupported, "feature", string(lacked))
		}
	}
	return nil
}

func writable(s *scene, c *candidate) *event.Filtered {
	if (c.pool.ReadOnly || c.pool.Replica) && !s.in.Shape.ReadOnly {
		return removed(PoolReadOnly, "statement", string(s.in.Shape.Statement))
	}
	return nil
}
