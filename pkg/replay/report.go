package replay

import (
	"time"

	"github.com/pointsman/pointsman/pkg/event"
)

// Mode says what a report compares.
type Mode string

// The modes.
const (
	// Tried compares recorded decisions with what another policy decides.
	Tried Mode = "tried"
	// Checked compares recorded decisions with what their own policies decide now.
	Checked Mode = "checked"
	// Compared compares two policies over recorded inputs, MadeUp over inputs that nobody sent.
	Compared Mode = "compared"
	MadeUp   Mode = "madeUp"
)

// Report says what differs, with the sample size of everything.
type Report struct {
	Mode Mode `json:"mode"`
	// From and To are the bounds asked for; First and Last are the moments of the first and the last decision looked at.
	From  time.Time `json:"from,omitzero"`
	To    time.Time `json:"to,omitzero"`
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Before is the hash of the policy that decided first, if it was one alone; After that of the policy tried. The names are
	// the files they came from, where that is known.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`

	// PolicyChanges are the differences of the two policies' texts, in words; the caller knows them.
	PolicyChanges []string `json:"policyChanges,omitempty"`

	BeforeName string `json:"beforeName,omitempty"`
	AfterName  string `json:"afterName,omitempty"`

	// Decisions is how many were made again and compared; Changed are those of them that lead elsewhere.
	Decisions int     `json:"decisions"`
	Changed   int     `json:"changed"`
	Share     float64 `json:"share"`
	// Identical have the same bytes.
	Identical int `json:"identical"`

	Kinds  []KindCount `json:"kinds,omitempty"`
	Places []Place     `json:"places,omitempty"`
	// Moves and Rules count changed decisions alone.
	Moves        []Move  `json:"moves,omitempty"`
	Rules        []Move  `json:"rules,omitempty"`
	Tenants      []Group `json:"tenants,omitempty"`
	Fingerprints []Group `json:"fingerprints,omitempty"`

	Expected *Expected `json:"expected,omitempty"`
	Samples  []Sample  `json:"samples,omitempty"`
	Check    Check     `json:"check"`
	Gaps     Gaps      `json:"gaps"`
}

// KindCount counts the cases of one kind.
type KindCount struct {
	Kind Kind `json:"kind"`
	N    int  `json:"n"`
}

// Place counts where decisions led, before and after.
type Place struct {
	Name   string `json:"name"`
	Before int    `json:"before"`
	After  int    `json:"after"`
}

// Move counts the cases that went from one place, or rule, to another.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	N    int    `json:"n"`
}

// Group counts the cases of a tenant or a fingerprint.
type Group struct {
	Name    string `json:"name"`
	N       int    `json:"n"`
	Changed int    `json:"changed"`
	// Statement and Tables say what a fingerprint's queries do.
	Statement string   `json:"statement,omitempty"`
	Tables    []string `json:"tables,omitempty"`
}

// Expected is what the decisions themselves expected, over the cases that were routed both times with both numbers known.
type Expected struct {
	N int `json:"n"`
	// Hit is the mean probability of meeting the SLA, Cost the mean cost in the policy's own unit.
	HitBefore  float64 `json:"hitBefore"`
	HitAfter   float64 `json:"hitAfter"`
	CostBefore float64 `json:"costBefore"`
	CostAfter  float64 `json:"costAfter"`
}

// Sample is one changed decision in words.
type Sample struct {
	TaskID      string    `json:"taskId"`
	Attempt     int       `json:"attempt"`
	At          time.Time `json:"at"`
	Tenant      string    `json:"tenant,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Statement   string    `json:"statement,omitempty"`
	Tables      []string  `json:"tables,omitempty"`
	Kind        Kind      `json:"kind"`
	// Like is how many cases changed in the same way.
	Like   int    `json:"like"`
	Before Answer `json:"before"`
	After  Answer `json:"after"`
	// Why says what made the difference.
	Why []string `json:"why"`
	// Facts describe an input that was made up.
	Facts []string `json:"facts,omitempty"`
}

// Answer is a decision without its details.
type Answer struct {
	Kind event.DecisionKind `json:"kind"`
	event.Target
	Rule    string         `json:"rule,omitempty"`
	Reasons []event.Reason `json:"reasons,omitempty"`
}

// Check counts how many recorded decisions their own policies give again, byte for byte.
type Check struct {
	Reproduced int `json:"reproduced"`
	Different  int `json:"different"`
	// Unchecked have a policy whose text is not in the record, by hash.
	Unchecked int            `json:"unchecked"`
	Unknown   map[string]int `json:"unknownPolicies,omitempty"`
}

// Gaps count what could not be compared.
type Gaps struct {
	// WithoutPolicy were decided by the router itself: invalid requests, attempts used up. Cancels are wishes passed on.
	WithoutPolicy int `json:"withoutPolicy"`
	Cancels       int `json:"cancels"`
	// Repeats are decisions that a crash made twice; the first counts.
	Repeats int `json:"repeats"`
	// InputMissing are decisions whose input is not in the record, DecisionMissing the other way round.
	InputMissing    int `json:"inputMissing"`
	DecisionMissing int `json:"decisionMissing"`
	// Uncounted are inputs without an account of what the policy tried limits: that limit was not applied to them.
	Uncounted int `json:"uncounted"`
	// Newer are inputs with facts that this version does not know.
	Newer int `json:"newer"`
	// Unreadable are records that could not be read at all.
	Unreadable int `json:"unreadable"`
}
