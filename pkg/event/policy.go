package event

import (
	"time"

	"github.com/pointsman/pointsman/pkg/query"
)

// PolicyText is a routing policy as a router loaded it, so that its decisions can be made again when the file has changed.
type PolicyText struct {
	// Hash identifies the text; decisions carry it as policyHash.
	Hash string `json:"hash"`
	Text string `json:"text"`
	// File is where the text came from; empty for the built-in policy.
	File     string    `json:"file,omitempty"`
	LoadedAt time.Time `json:"loadedAt"`

	Extra query.Extra `json:"-"`
}

type policyTextFields PolicyText

// UnmarshalJSON reads a policy's text and keeps unknown fields.
func (p *PolicyText) UnmarshalJSON(data []byte) error {
	var f policyTextFields
	extra, err := query.DecodeObject(data, &f)
	if err != nil {
		return err
	}
	*p = PolicyText(f)
	p.Extra = extra
	return nil
}

// MarshalJSON writes the policy's text with its unknown fields.
func (p PolicyText) MarshalJSON() ([]byte, error) {
	return query.EncodeObject((*policyTextFields)(&p), p.Extra)
}
