package history

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pointsman/pointsman/pkg/history/row"
)

// Range is a run of offsets of one partition of one topic.
type Range struct {
	// TopicID is the broker's id of the topic, not its name: a topic that was deleted and made again starts at offset 0 anew, and
	// must not be taken for the old one.
	TopicID     string
	Partition   int32
	First, Last int64
}

// Batch is rows of one table with the offsets they were cut from, the offsets of records without a row included.
type Batch struct {
	Rows   row.Set
	Ranges []Range
}

// Token is what the server recognises a repeated insert by: a pure function of where the rows came from and of how they are
// laid out. The same range with other rows would be dropped silently, so a batch that is cut again has another token.
func (b Batch) Token() string {
	ranges := slices.Clone(b.Ranges)
	slices.SortFunc(ranges, func(x, y Range) int {
		if c := strings.Compare(x.TopicID, y.TopicID); c != 0 {
			return c
		}
		return int(x.Partition) - int(y.Partition)
	})
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = fmt.Sprintf("%s/%d/%d-%d", r.TopicID, r.Partition, r.First, r.Last)
	}
	text := strings.Join(parts, ",")
	if len(parts) > 1 {
		sum := sha256.Sum256([]byte(text))
		text = hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("v%d/%s", row.SchemaVersion, text)
}

// maxPartitions bounds the days that one insert touches. ClickHouse refuses a block of more than 100 partitions, and a view
// behind the table may be partitioned by the day.
const maxPartitions = 90

// split cuts rows that touch too many days into groups, oldest first. Almost always there is one group: all of them.
func split(rows row.Set, most int) []row.Set {
	days := map[time.Time][]int{}
	for i := range rows.Len() {
		day := rows.Time(i).UTC().Truncate(24 * time.Hour)
		days[day] = append(days[day], i)
	}
	if len(days) <= most {
		return []row.Set{rows}
	}
	sorted := make([]time.Time, 0, len(days))
	for day := range days {
		sorted = append(sorted, day)
	}
	slices.SortFunc(sorted, time.Time.Compare)
	var out []row.Set
	for group := range slices.Chunk(sorted, most) {
		var places []int
		for _, day := range group {
			places = append(places, days[day]...)
		}
		out = append(out, rows.Pick(places))
	}
	return out
}
