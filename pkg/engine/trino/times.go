package trino

import (
	"strings"
	"sync"
	"time"
)

// date is a day as its midnight in UTC. A day that Go's years don't reach stays a text.
func date(text string) any {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return text
	}
	return t
}

// wallClock is a date and time without a zone, which is no instant: a text in ISO 8601's form.
func wallClock(text string) string {
	return strings.Replace(trimFraction(text), " ", "T", 1)
}

// trimFraction takes the zeros from the end of a fraction of seconds.
func trimFraction(clock string) string {
	if strings.Contains(clock, ".") {
		clock = strings.TrimRight(strings.TrimRight(clock, "0"), ".")
	}
	return clock
}

// instant reads a timestamp with time zone. What can't be given exactly stays a text: fractions beyond nanoseconds, years of
// five digits, zones that this machine does not know, and an hour that its zone has twice, of which the server does not say
// which one it means.
func instant(text string) any {
	clock, zone, ok := cutLast(text, " ")
	if !ok {
		return text
	}
	clock = trimFraction(clock)
	if _, fraction, _ := strings.Cut(clock, "."); len(fraction) > 9 {
		return text
	}
	wall, err := time.Parse("2006-01-02 15:04:05.999999999", clock)
	if err != nil {
		return text
	}
	if zone == "UTC" {
		return wall
	}
	if offset, err := time.Parse("-07:00", zone); err == nil {
		_, seconds := offset.Zone()
		return wall.Add(-time.Duration(seconds) * time.Second)
	}
	location, err := zones.load(zone)
	if err != nil {
		return text
	}
	return inZone(wall, location, text)
}

// inZone finds the one instant at which clocks of a zone show a time.
func inZone(wall time.Time, location *time.Location, text string) any {
	var found time.Time
	for _, near := range []time.Time{wall.Add(-26 * time.Hour), wall.Add(26 * time.Hour)} { // no zone changes twice in two days
		_, seconds := near.In(location).Zone()
		t := wall.Add(-time.Duration(seconds) * time.Second)
		if _, shown := t.In(location).Zone(); shown != seconds {
			continue
		}
		if !found.IsZero() && !found.Equal(t) {
			return text
		}
		found = t
	}
	if found.IsZero() {
		return text
	}
	return found
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// zoneCache keeps zones, which the standard library reads from disk each time.
type zoneCache struct {
	mu    sync.Mutex
	known map[string]*time.Location
}

var zones = zoneCache{known: map[string]*time.Location{}}

func (c *zoneCache) load(name string) (*time.Location, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.known[name]; ok {
		return l, nil
	}
	l, err := time.LoadLocation(name)
	if err == nil {
		c.known[name] = l
	}
	return l, err
}
