package access_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/intake/access"
	"github.com/pointsman/pointsman/services/intake/problem"
)

const secretA, secretB = "a-secret-of-tenant-a", "a-secret-of-tenant-b"

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func tokens() access.Config {
	return access.Config{Mode: access.Token, Tokens: []access.TokenConfig{
		{Name: "a", Secret: secretA, Tenant: "tenant_a", User: "user_a", Class: query.Agent},
		{Name: "b", SHA256: digest(secretB), Tenant: "tenant_b"},
	}}
}

func gate(t *testing.T, c access.Config) *access.Gate {
	t.Helper()
	require.NoError(t, config.Validate(c))
	g, err := access.NewGate(c)
	require.NoError(t, err)
	return g
}

func code(t *testing.T, err error) problem.Code {
	t.Helper()
	require.Error(t, err)
	return problem.Of(err).Code
}

func TestWho(t *testing.T) {
	g := gate(t, tokens())
	for _, c := range []struct{ name, header, tenant string }{
		{"by secret", "Bearer " + secretA, "tenant_a"},
		{"by digest", "bearer " + secretB, "tenant_b"},
		{"no header", "", ""},
		{"wrong", "Bearer nope", ""},
		{"empty", "Bearer ", ""},
		{"basic", "Basic " + secretA, ""},
		{"the digest is not the token", "Bearer " + digest(secretB), ""},
		{"a prefix is not the token", "Bearer " + secretA[:10], ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Authorization", c.header)
			p, err := g.Who(r)
			if c.tenant == "" {
				require.Equal(t, problem.Unauthorized, code(t, err))
				require.NotContains(t, err.Error(), "secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.tenant, p.Tenant)
			require.True(t, p.Sees(c.tenant))
			require.False(t, p.Sees("another"))
			require.False(t, p.Sees(""), "a task of nobody")
		})
	}
}

func TestStamp(t *testing.T) {
	g := gate(t, tokens())
	a := access.Principal{Tenant: "tenant_a", User: "user_a", Class: query.Agent}

	session := &query.Session{ID: "s", Class: query.Human}
	task := query.Task{User: "somebody", Session: session}
	require.NoError(t, g.Stamp(a, &task))
	require.Equal(t, "tenant_a", task.Tenant)
	require.Equal(t, "user_a", task.User, "the credential's user wins")
	require.Equal(t, query.Session{ID: "s", Class: query.Agent}, *task.Session)
	require.Equal(t, query.Human, session.Class, "the caller's own value stays as it was")

	task = query.Task{Tenant: "tenant_b"}
	require.Equal(t, problem.WrongTenant, code(t, g.Stamp(a, &task)))

	task = query.Task{Tenant: "tenant_b", User: "u"}
	require.NoError(t, g.Stamp(access.Principal{Tenant: "tenant_b"}, &task))
	require.Equal(t, "u", task.User, "a token without a user lets the request name one")
	require.Nil(t, task.Session)
}

func TestAnonymous(t *testing.T) {
	g := gate(t, access.Config{Mode: access.None, Tenants: []string{"tenant_a"}})
	p, err := g.Who(httptest.NewRequest(http.MethodGet, "/", nil))
	require.NoError(t, err)
	require.True(t, p.Sees("whoever"))
	task := query.Task{Tenant: "tenant_a", User: "u"}
	require.NoError(t, g.Stamp(p, &task))
	require.Equal(t, "u", task.User)
	task.Tenant = "tenant_x"
	require.Equal(t, problem.UnknownTenant, code(t, g.Stamp(p, &task)))
}

func TestConfigIsChecked(t *testing.T) {
	one := func(edit func(*access.TokenConfig)) access.Config {
		c := tokens()
		edit(&c.Tokens[0])
		return c
	}
	for name, c := range map[string]access.Config{
		"no mode":          {},
		"no tokens":        {Mode: access.Token},
		"tokens unused":    {Mode: access.None, Tokens: tokens().Tokens},
		"no tenant":        one(func(t *access.TokenConfig) { t.Tenant = "" }),
		"no secret":        one(func(t *access.TokenConfig) { t.Secret = "" }),
		"both":             one(func(t *access.TokenConfig) { t.SHA256 = digest("x") }),
		"short":            one(func(t *access.TokenConfig) { t.Secret = "short" }),
		"no digest":        one(func(t *access.TokenConfig) { t.Secret, t.SHA256 = "", strings.Repeat("z", 64) }),
		"truncated digest": one(func(t *access.TokenConfig) { t.Secret, t.SHA256 = "", "abcd" }),
		"class":            one(func(t *access.TokenConfig) { t.Class = "robot" }),
	} {
		t.Run(name, func(t *testing.T) { require.Error(t, config.Validate(c)) })
	}
}

func TestLimiter(t *testing.T) {
	l, err := access.NewLimiter(access.LimitConfig{PerSecond: 2, Burst: 3})
	require.NoError(t, err)
	now := time.Date(2026, 11, 30, 9, 15, 0, 0, time.UTC)
	for range 3 {
		ok, _ := l.Allow("a", now)
		require.True(t, ok)
	}
	ok, after := l.Allow("a", now)
	require.False(t, ok)
	require.Equal(t, 500*time.Millisecond, after)
	ok, _ = l.Allow("b", now)
	require.True(t, ok, "each tenant by itself")
	ok, _ = l.Allow("a", now.Add(500*time.Millisecond))
	require.True(t, ok, "a refusal has cost nothing")

	l, err = access.NewLimiter(access.LimitConfig{})
	require.NoError(t, err)
	for range 1000 {
		ok, _ := l.Allow("a", now)
		require.True(t, ok)
	}
	require.Error(t, config.Validate(access.LimitConfig{PerSecond: -1}))
	require.Error(t, config.Validate(access.LimitConfig{PerSecond: 1}))
}
