package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/stream"
)

// Findings are what a judgement counted on its way. They say how hard the run was, not whether it was right.
type Findings struct {
	Tasks, Outcomes, OutcomeRecords       int
	Attempts, Submissions                 int
	Decisions, DecisionRecords, Void      int
	Leases, TakenOver, Reclaimed, Retried int
	// Unsent were claimed and never submitted: their owner stopped in between.
	Unsent int
	// Slowest is the Task that took longest.
	Slowest event.Outcome
	// Ending and Storing are how long it took until all had ended, and until ClickHouse had it all; Rolling is the part of the rollups.
	Ending, Storing, Rolling time.Duration
}

// String is one line.
func (f Findings) String() string {
	return fmt.Sprintf("%d tasks, %d outcomes in %d records, %d decisions in %d records, %d attempts claimed, %d submitted; "+
		"%d leases, %d attempts found open by a later owner, %d claimed and never submitted, %d claimed by two owners, %d tasks tried more than once, "+
		"%d leases, claims and ends void; slowest %s with %d ms in %d attempts; all ended after %s, all in ClickHouse after %s more, %s of it for rollups",
		f.Tasks, f.Outcomes, f.OutcomeRecords, f.Decisions, f.DecisionRecords, f.Attempts, f.Submissions, f.Leases, f.TakenOver, f.Unsent, f.Reclaimed, f.Retried,
		f.Void, f.Slowest.TaskID, f.Slowest.TotalMs, f.Slowest.Attempts, f.Ending.Round(time.Millisecond), f.Storing.Round(time.Millisecond), f.Rolling.Round(time.Millisecond))
}

// Judge waits for the end of every Task and then holds the whole world against what is promised:
//
//   - none is lost, no Task has two different Outcomes, and nobody else's Task has one;
//   - every engine saw at most one submission of an attempt, each under a claim that stands in the ledger, and none after the
//     attempt had ended there: an owner that was taken for dead must not run what its successor has given up or run anew;
//   - what was published is what the ledger fixed, byte for byte;
//   - ClickHouse has what the topics have, by id, the first record of each.
func (w *World) Judge(ids []string, within time.Duration) Findings {
	w.T.Helper()
	began := time.Now()
	w.Log.Ended(ids, within)
	w.Log.CatchUp(time.Minute)
	f := Findings{Tasks: len(ids), Ending: time.Since(began)}
	w.judgeOutcomes(&f, ids)
	w.judgeSubmissions(&f)
	began = time.Now()
	w.judgeHistory(&f)
	f.Storing = time.Since(began)
	if f.Slowest.TotalMs > slow.Milliseconds() {
		w.T.Logf("why %s took so long:\n%s", f.Slowest.TaskID, w.Log.Story(f.Slowest.TaskID))
	}
	return f
}

func (w *World) judgeOutcomes(f *Findings, ids []string) {
	w.T.Helper()
	expected := map[string]bool{}
	for _, id := range ids {
		expected[id] = true
	}
	first := map[string]*kgo.Record{}
	for _, rec := range w.Log.Records(event.TopicOutcomes) {
		o, ok := outcomeOf(rec)
		if !ok {
			continue
		}
		require.Equal(w.T, string(rec.Key), o.TaskID)
		require.True(w.T, expected[o.TaskID], "task %s has an outcome, and nobody has asked for it\n%s", o.TaskID, w.Log.Story(o.TaskID))
		f.OutcomeRecords++
		if have := first[o.TaskID]; have != nil {
			if !bytes.Equal(have.Value, rec.Value) {
				require.Empty(w.T, cmp.Diff(string(have.Value), string(rec.Value)), "task %s has two different outcomes\n%s", o.TaskID, w.Log.Story(o.TaskID))
			}
			continue
		}
		first[o.TaskID] = rec
		f.Outcomes++
		if o.TotalMs > f.Slowest.TotalMs {
			f.Slowest = o
		}
		if o.Attempts > 1 {
			f.Retried++
		}
	}
	finals := w.foldLedger(f)
	for id, rec := range first {
		require.Equal(w.T, string(finals[id]), string(rec.Value), "the outcome of %s is not the one that the ledger fixed", id)
	}
}

// outcomeOf reads an Outcome; false is a record that is none, which a test has put there.
func outcomeOf(rec *kgo.Record) (o event.Outcome, ok bool) {
	env, err := stream.Decode(rec, stream.RulesFor(event.TopicOutcomes))
	return o, err == nil && env.Type == event.TaskEnded && json.Unmarshal(env.Data, &o) == nil && o.TaskID != ""
}

// slow is how long a Task may take before its story is told.
const slow = 15 * time.Second

const stamp = "15:04:05.000"

// foldLedger reads the executor's ledger as any reader has to, and returns the Outcomes that it fixed, by Task.
func (w *World) foldLedger(f *Findings) map[string]json.RawMessage {
	w.T.Helper()
	folds := map[int32]*ledger.Fold{}
	claims := map[string]map[string]bool{} // owners of the standing claims of an attempt
	open := map[string]bool{}
	finals := map[string]json.RawMessage{}
	reached := w.Interactive.Last()
	maps.Copy(reached, w.Batch.Last())
	for _, rec := range w.Log.Records(event.TopicAttemptState) {
		fold := folds[rec.Partition]
		if fold == nil {
			fold = ledger.NewFold(ledger.Anchor{})
			folds[rec.Partition] = fold
		}
		r, err := decodeLedger(rec)
		if err != nil {
			fold.Skip(rec.Offset, rec.Timestamp)
			f.Void++
			continue
		}
		v := fold.Apply(rec.Offset, rec.Timestamp, r)
		if !v.Accepted {
			if r.Kind != ledger.KindSubmitted { // a note that comes after the end is nothing out of the ordinary
				f.Void++
			}
			continue
		}
		switch r.Kind {
		case ledger.KindLease:
			f.Leases++
			for _, a := range fold.Open() {
				if !open[a.Key] {
					open[a.Key] = true
					f.TakenOver++
				}
			}
		case ledger.KindClaim:
			if claims[r.Key] == nil {
				claims[r.Key] = map[string]bool{}
			}
			claims[r.Key][r.Owner] = true
		case ledger.KindEnd:
			if at, ok := reached[r.Key]; ok {
				require.False(w.T, at.After(rec.Timestamp), "attempt %s reached its engine at %s, and had ended at %s\n%s", r.Key,
					at.UTC().Format(stamp), rec.Timestamp.UTC().Format(stamp), w.Log.Story(r.TaskID))
			}
			if r.Final {
				require.Nil(w.T, finals[r.TaskID], "the ledger ended task %s twice", r.TaskID)
				finals[r.TaskID] = r.Payload
			}
		case ledger.KindSubmitted: // it informs and decides nothing
		}
	}
	f.Attempts = len(claims)
	for _, owners := range claims {
		if len(owners) > 1 {
			f.Reclaimed++
		}
	}
	sent := w.Sent()
	for id := range claims {
		if sent[id] == 0 {
			f.Unsent++
		}
	}
	for id := range sent {
		require.NotEmpty(w.T, claims[id], "attempt %s was submitted without a claim that stands", id)
	}
	return finals
}

func decodeLedger(rec *kgo.Record) (ledger.Record, error) {
	env, err := stream.Decode(rec, stream.RulesFor(event.TopicAttemptState))
	if err != nil {
		return ledger.Record{}, err
	}
	return ledger.Decode(env.Data)
}

func (w *World) judgeSubmissions(f *Findings) {
	w.T.Helper()
	where := map[string]string{}
	for _, p := range []*Proxy{w.Interactive, w.Batch} {
		for id, n := range p.Submissions() {
			f.Submissions++
			task, _, _ := ledger.SplitAttemptKey(id)
			require.Equal(w.T, 1, n, "engine %s saw %d submissions of attempt %s\n%s", p.Name, n, id, w.Log.Story(task))
			require.Empty(w.T, where[id], "attempt %s was submitted to %s and to %s", id, where[id], p.Name)
			where[id] = p.Name
		}
		for id, n := range p.Arrivals() {
			require.Equal(w.T, 1, n, "attempt %s was sent to %s %d times", id, p.Name, n)
		}
	}
}

// firsts gives the offset of the first record of each id, as every reader has to see it: the lowest one counts.
func (w *World) firsts(topic string, idOf func(*kgo.Record, stream.Envelope) string) (map[string]uint64, int) {
	out := map[string]uint64{}
	records := 0
	for _, rec := range w.Log.Records(topic) {
		env, err := stream.Decode(rec, stream.RulesFor(topic))
		if err != nil {
			continue
		}
		id := idOf(rec, env)
		if id == "" {
			continue
		}
		records++
		if have, ok := out[id]; !ok || uint64(rec.Offset) < have {
			out[id] = uint64(rec.Offset)
		}
	}
	return out, records
}

// RequestID is the id that a request's record gets; it is "" for one that is no valid request.
func RequestID(rec *kgo.Record, env stream.Envelope) string {
	if env.Type == event.CancelRequested {
		var c event.Cancel
		if json.Unmarshal(env.Data, &c) != nil || !query.ValidID(c.TaskID) {
			return ""
		}
		return c.TaskID + " cancel"
	}
	var t query.Task
	if env.Type != event.QueryRequested || json.Unmarshal(env.Data, &t) != nil {
		return ""
	}
	// What is too large or too long for a router is a request all the same.
	if t.Validate(query.Limits{MaxSQLBytes: 1 << 30, MaxSLA: 1<<63 - 1, MaxTimeout: 1<<63 - 1}) != nil {
		return ""
	}
	switch {
	case t.ID != "":
		return t.ID + " request"
	case t.IdempotencyKey != "":
		return query.IDFromKey(t.Tenant, t.IdempotencyKey) + " request"
	case env.ID != "" && env.Source != "":
		return query.IDFromKey("ce:"+env.Source, env.ID) + " request"
	default:
		return query.IDFromRecord(event.TopicRequests, rec.Partition, rec.Offset) + " request"
	}
}

// IsClaim says whether a record of the ledger is a claim.
func IsClaim(rec *kgo.Record) bool {
	r, err := decodeLedger(rec)
	return err == nil && r.Kind == ledger.KindClaim
}

// Unsent are the attempts that a process, by its name, has claimed and that have neither ended nor reached an engine.
func (w *World) Unsent(name string) (ids []string) {
	w.T.Helper()
	open := map[string]bool{}
	for _, rec := range w.Log.Records(event.TopicAttemptState) {
		r, err := decodeLedger(rec)
		switch {
		case err != nil:
		case r.Kind == ledger.KindClaim && Header(rec, "ce_source") == name:
			open[r.Key] = true
		case r.Kind == ledger.KindEnd:
			delete(open, r.Key)
		}
	}
	sent := w.Sent()
	for id := range open {
		if sent[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
