// Package access says who a caller is, and how often a tenant may call.
//
// Tenant, user and session class come from the credential and win over what a request says of itself. What a principal
// may see and do is left to the handlers: a tenant sees its own tasks and no others.
package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pointsman/pointsman/pkg/config"
	"github.com/pointsman/pointsman/pkg/query"
	"github.com/pointsman/pointsman/services/intake/problem"
)

// Mode is how callers are known.
type Mode string

// The modes. There is no default: a service that lets everybody in was told to.
const (
	// Token asks for a bearer token of the list.
	Token Mode = "token"
	// None believes what a request says of itself, for a machine that only its user reaches.
	None Mode = "none"
)

// Config lists who may come in.
type Config struct {
	Mode   Mode          `yaml:"mode" doc:"Who may call: token (a bearer token of the list) or none (everybody; the request names its tenant)."`
	Tokens []TokenConfig `yaml:"tokens" doc:"The tokens that are let in."`
	// Tenants bounds mode none.
	Tenants []string `yaml:"tenants" doc:"Tenants that are known, in mode none; empty means any."`
}

// TokenConfig is one credential.
type TokenConfig struct {
	Name   string             `yaml:"name" doc:"What the token is called in logs."`
	Secret config.Secret      `yaml:"secret" doc:"The token itself; give this or sha256."`
	SHA256 string             `yaml:"sha256" doc:"SHA-256 of the token in hex, so that the file holds no secret."`
	Tenant string             `yaml:"tenant" doc:"Tenant of whoever has the token."`
	User   string             `yaml:"user" doc:"User of whoever has the token; empty lets the request name one, for a tool that many use."`
	Class  query.SessionClass `yaml:"class" doc:"Session class of whoever has the token: human, batch or agent; empty lets the request name one."`
}

// minSecretBytes keeps guessable tokens out.
const minSecretBytes = 16

// Validate reports every fault.
func (c Config) Validate() error {
	switch c.Mode {
	case None:
		if len(c.Tokens) > 0 {
			return config.Invalid("tokens", "are not looked at in mode none: remove them, or use mode token")
		}
	case Token:
		if len(c.Tokens) == 0 {
			return config.Invalid("tokens", "name at least one, or set mode none on a machine that only its user reaches")
		}
	default:
		return config.Invalid("mode", "must be token or none, is %q", c.Mode)
	}
	return nil
}

// Validate reports the faults of one token.
func (c TokenConfig) Validate() error {
	switch {
	case c.Tenant == "":
		return config.Invalid("tenant", "is missing")
	case (c.Secret == "") == (c.SHA256 == ""):
		return config.Invalid("secret", "give either secret or sha256")
	case c.Secret != "" && len(c.Secret.Reveal()) < minSecretBytes:
		return config.Invalid("secret", "is too short: at least %d characters", minSecretBytes)
	case c.SHA256 != "" && !isDigest(c.SHA256):
		return config.Invalid("sha256", "must be %d hex digits", 2*sha256.Size)
	}
	switch c.Class {
	case "", query.Human, query.Batch, query.Agent:
		return nil
	default:
		return config.Invalid("class", "must be human, batch or agent, is %q", c.Class)
	}
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// Principal is who calls. The zero Principal is nobody.
type Principal struct {
	// Name of the token, for logs.
	Name   string
	Tenant string
	User   string
	Class  query.SessionClass
	// Anonymous callers name their tenant themselves, and see every task.
	Anonymous bool
}

// Sees reports whether the principal may know of a task of this tenant. A task whose tenant is not known is nobody's.
func (p Principal) Sees(tenant string) bool {
	return p.Anonymous || (tenant != "" && tenant == p.Tenant)
}

// Gate knows the callers.
type Gate struct {
	mode    Mode
	tokens  []known
	tenants []string
}

type known struct {
	digest    [sha256.Size]byte
	principal Principal
}

// NewGate builds a gate from a configuration that has been validated.
func NewGate(c Config) (*Gate, error) {
	g := &Gate{mode: c.Mode, tenants: slices.Clone(c.Tenants)}
	for i, t := range c.Tokens {
		k := known{principal: Principal{Name: t.Name, Tenant: t.Tenant, User: t.User, Class: t.Class}}
		if k.principal.Name == "" {
			k.principal.Name = fmt.Sprintf("token %d", i+1)
		}
		if t.Secret != "" {
			k.digest = sha256.Sum256([]byte(t.Secret.Reveal()))
		} else {
			b, err := hex.DecodeString(t.SHA256)
			if err != nil || len(b) != sha256.Size {
				return nil, fmt.Errorf("token %q: its sha256 is no digest", t.Name)
			}
			copy(k.digest[:], b)
		}
		g.tokens = append(g.tokens, k)
	}
	return g, nil
}

// Who says who sent a request, or why nobody is let in. All tokens are compared, in a time that does not depend on
// which of them fits or how far it does.
func (g *Gate) Who(r *http.Request) (Principal, error) {
	if g.mode == None {
		return Principal{Name: "anonymous", Anonymous: true}, nil
	}
	scheme, sent, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return Principal{}, problem.New(problem.Unauthorized, "send the token as: Authorization: Bearer <token>")
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(sent)))
	match := -1
	for i := range g.tokens {
		match = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(digest[:], g.tokens[i].digest[:]), i, match)
	}
	if match < 0 {
		return Principal{}, problem.New(problem.Unauthorized, "the token is not known")
	}
	return g.tokens[match].principal, nil
}

// Stamp puts the principal's tenant, user and class into a Task. A Task that names another tenant is refused: somebody
// has mixed up credentials, and guessing which of the two was meant would be wrong half the time.
func (g *Gate) Stamp(p Principal, t *query.Task) error {
	if p.Anonymous {
		if len(g.tenants) > 0 && t.Tenant != "" && !slices.Contains(g.tenants, t.Tenant) {
			return problem.New(problem.UnknownTenant, fmt.Sprintf("tenant %q is not one of those known here", t.Tenant))
		}
		return nil
	}
	if t.Tenant != "" && t.Tenant != p.Tenant {
		return problem.New(problem.WrongTenant, "the request names another tenant than the token's; leave the tenant out")
	}
	t.Tenant = p.Tenant
	if p.User != "" {
		t.User = p.User
	}
	if p.Class != "" {
		session := query.Session{}
		if t.Session != nil {
			session = *t.Session
		}
		session.Class = p.Class
		t.Session = &session
	}
	return nil
}
