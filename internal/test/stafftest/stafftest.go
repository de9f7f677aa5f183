// Package stafftest has a platform that knows who is staff, and counts what it is asked.
package stafftest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/platform"
)

// Staff are those that the platform knows, by cookie.
var Staff = map[string]platform.StaffMember{
	"owner":  {Roles: []string{"Owner"}, Permissions: platform.Permissions{UploadThemes: true, ManageManifests: true}},
	"editor": {Roles: []string{"Editor"}, Permissions: platform.Permissions{ManageManifests: true}},
	"author": {Roles: []string{"Author"}},
}

// Platform is a [platform.Authenticator]. Its only valid token is "token".
type Platform struct {
	Away  bool
	Delay time.Duration // of each question

	mu    sync.Mutex
	asked map[string]int
}

// Asked returns how often each visitor was asked about: by cookie and origin, or by token.
// It may be called when nobody asks.
func (p *Platform) Asked() map[string]int { return p.asked }

func (p *Platform) count(of string) {
	time.Sleep(p.Delay)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = make(map[string]int)
	}
	p.asked[of]++
}

// HasSession takes every cookie for a session.
func (*Platform) HasSession(cookie string) bool { return cookie != "" }

// HasToken takes everything for a token.
func (*Platform) HasToken(authorization string) bool { return authorization != "" }

// CheckToken lets "token" in.
func (p *Platform) CheckToken(_ context.Context, authorization string) error {
	p.count(authorization)
	if authorization == "token" {
		return nil
	}
	return platform.ErrNotStaff
}

// Staff finds a visitor in [Staff].
func (p *Platform) Staff(_ context.Context, visitor platform.Visitor) (platform.StaffMember, error) {
	p.count(visitor.Cookie + " " + visitor.Origin)
	if p.Away {
		return platform.StaffMember{}, errors.New("no answer")
	}
	if member, ok := Staff[visitor.Cookie]; ok {
		return member, nil
	}
	return platform.StaffMember{}, platform.ErrNotStaff
}

// Limiter has the default rate limit of failed authentication: 30 a minute.
func Limiter(t testing.TB) ratelimit.Limiter {
	t.Helper()
	limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: ratelimit.Limit{Requests: 30, Window: time.Minute}})
	if err != nil {
		t.Fatalf("ratelimit.NewMemory: %v", err)
	}
	return limiter
}
