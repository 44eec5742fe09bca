package route

import (
	"github.com/pointsman/pointsman/pkg/policy"
	"github.com/pointsman/pointsman/pkg/query"
)

type inputFields Input

// MarshalJSON writes the input, complete but for its policy, of which it has the hash: with that policy the decoded input
// decides the same, byte for byte.
func (in Input) MarshalJSON() ([]byte, error) {
	if in.Policy != nil {
		in.PolicyHash = in.Policy.Hash
	}
	return query.EncodeObject((*inputFields)(&in), in.Extra)
}

// MarshalWith is MarshalJSON with signals that are JSON already: many inputs share them, and they are half of an input. Nil
// leaves them out.
func (in Input) MarshalWith(signals []byte) ([]byte, error) {
	in.Signals = nil
	data, err := in.MarshalJSON()
	if err != nil || signals == nil {
		return data, err
	}
	const name = `,"signals":`
	out := make([]byte, 0, len(data)+len(name)+len(signals))
	out = append(append(out, data[:len(data)-1]...), name...)
	return append(append(out, signals...), '}'), nil
}

// UnmarshalJSON reads an input. Its policy is not there: the reader finds it by PolicyHash. Fields that this version does not
// know are kept in Extra: a decision that depended on them can't be made again by this version.
func (in *Input) UnmarshalJSON(data []byte) error {
	var f inputFields
	extra, err := query.DecodeObject(data, &f)
	if err != nil {
		return err
	}
	*in = Input(f)
	in.Extra = extra
	return nil
}

// Trace says of every rule of the input's policy what becomes of it, and why.
func Trace(in Input) []policy.RuleTrace {
	in.Policy = in.Policy.For(in.Task.Tenant)
	return in.Policy.Trace(facts(&in))
}
