package contracts

import (
	"reflect"

	"github.com/pointsman/pointsman/pkg/event"
	"github.com/pointsman/pointsman/pkg/ledger"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/pkg/route"
	"github.com/pointsman/pointsman/pkg/signal"
)

// Event is one payload type with the Go type that holds it.
type Event struct {
	// Name is the CloudEvents type, and the name of the schema file. Attempts have one schema for all states.
	Name    string
	Go      reflect.Type
	Summary string
	// Require names fields beyond those that are always written. AnyOf asks for one of several.
	Require []string
	AnyOf   []string
}

// AttemptEvents stands for the types pointsman.attempt.<state>.v1.
const AttemptEvents = "pointsman.attempt.v1"

// Events returns all payload types, in the order in which a Task meets them.
func Events() []Event {
	return []Event{
		{
			Name: string(event.QueryRequested), Go: reflect.TypeFor[query.Task](),
			Summary: "A user asks for a query. Written by intake and by any producer.", Require: []string{"tenant"}, AnyOf: []string{"sql", "intent"},
		},
		{
			Name: string(event.CancelRequested), Go: reflect.TypeFor[event.Cancel](),
			Summary: "A user no longer wants a Task. Written by intake and by any producer.",
		},
		{
			Name: string(event.DecisionRouted), Go: reflect.TypeFor[event.RouteDecision](),
			Summary: "The router has chosen where an attempt goes.", Require: []string{"task"},
		},
		{
			Name: string(event.DecisionRejected), Go: reflect.TypeFor[event.RouteDecision](),
			Summary: "The router does not let a Task run.", Require: []string{"rejection"},
		},
		{
			Name: string(event.DecisionCancel), Go: reflect.TypeFor[event.RouteDecision](),
			Summary: "The router passes a wish to cancel on to the executor.", Require: []string{"cancel"},
		},
		{
			Name: string(event.InputRecorded), Go: reflect.TypeFor[route.Input](),
			Summary: "A router has decided, and this is all that the decision depended on, but for the policy's text.", Require: []string{"policyHash"},
		},
		{
			Name: string(event.PolicyLoaded), Go: reflect.TypeFor[event.PolicyText](),
			Summary: "A router decides by this policy from now on.",
		},
		{
			Name: AttemptEvents, Go: reflect.TypeFor[event.Attempt](),
			Summary: "An attempt has changed its state. The CloudEvents type names the state: pointsman.attempt.<state>.v1.",
		},
		{
			Name: string(event.TaskEnded), Go: reflect.TypeFor[event.Outcome](),
			Summary: "A Task has ended. There is one for each Task that has a decision.",
		},
		{
			Name: string(event.ClusterObserved), Go: reflect.TypeFor[signal.Observation](),
			Summary: "A source has looked at a cluster.",
		},
		{
			Name: string(event.LedgerRecorded), Go: reflect.TypeFor[ledger.Record](),
			Summary: "A lease, a claim, note or end of an attempt, or a record of a session's budget was written to a ledger. Whether it counts, only a reader of the whole partition knows.",
		},
		{
			Name: string(event.SlotRecorded), Go: reflect.TypeFor[event.SlotRecord](),
			Summary: "An executor asks for one of the slots that all executors share, or gives one back, or says what the caps are. Whether it counts, only a reader of the whole topic knows.",
		},
	}
}
