package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/deploy/policies"
	"github.com/pointsman/pointsman/pkg/policy"
)

func TestShippedPolicyLoads(t *testing.T) {
	p, err := policy.Load("deploy/policies/default.yaml", policies.Default)
	require.NoError(t, err)
	require.Len(t, p.Pools, 2)
}
