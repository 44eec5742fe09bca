package ledger

// Reason says why a record stands or is void.
type Reason string

// The reasons. The first one is the only one of a record that stands.
const (
	ReasonAccepted     Reason = "accepted"
	ReasonMalformed    Reason = "malformed"      // a field that the fold needs is missing or contradicts an earlier record
	ReasonUnknownKind  Reason = "unknown_kind"   // written by a newer version
	ReasonEpochTaken   Reason = "epoch_taken"    // a lease that lost the race
	ReasonEpochGap     Reason = "epoch_gap"      // a lease, or a record, of an epoch nobody holds yet
	ReasonStaleEpoch   Reason = "stale_epoch"    // a newer lease stands before it
	ReasonNotOwner     Reason = "not_owner"      // right epoch, held by somebody else
	ReasonTaskEnded    Reason = "task_ended"     // the Task has its Outcome
	ReasonAttemptEnded Reason = "attempt_ended"  // the attempt has its end
	ReasonNotClaimed   Reason = "not_claimed"    // submitted without a claim
	ReasonExpired      Reason = "past_deadline"  // a claim appended after its Task's deadline
	ReasonUnread       Reason = "not_a_record"   // a value that is not a record's JSON; see Fold.Skip
	ReasonUnanswered   Reason = "unanswered"     // of a Driver: whether an open claim was submitted can't be found out
	ReasonOutOfOrder   Reason = "offset_not_new" // at or below a position that was applied before
)

// Verdict is what the fold made of one record.
type Verdict struct {
	Accepted bool
	Reason   Reason
}

// Lost says that the record is void because its writer no longer owns the partition, or never did. The writer must stop acting.
// Every other refusal tells an owner that is still the owner something about the Task.
func (v Verdict) Lost() bool {
	switch v.Reason {
	case ReasonEpochTaken, ReasonEpochGap, ReasonStaleEpoch, ReasonNotOwner:
		return true
	default:
		return false
	}
}

// Accept is the verdict of a State on a record that stands.
func Accept() Verdict { return accept() }

// Refuse is the verdict of a State on a record that changes nothing.
func Refuse(reason Reason) Verdict { return refuse(reason) }

func accept() Verdict              { return Verdict{Accepted: true, Reason: ReasonAccepted} }
func refuse(reason Reason) Verdict { return Verdict{Reason: reason} }
