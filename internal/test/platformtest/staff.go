package platformtest

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/ratelimit"
	"github.com/lychgate/caddy-lychgate/platform"
)

var administrator = platform.Permissions{UploadThemes: true, ManageManifests: true, Administer: true}

// Staff are those that a Platform knows, by their role in lower case. The cookie of a session
// is session= and the role, or the role alone.
var Staff = map[string]platform.StaffMember{
	"owner":         {Roles: []string{"Owner"}, Permissions: administrator},
	"administrator": {ID: "2", Name: "Adam", Roles: []string{"Administrator"}, Permissions: administrator},
	"editor":        {ID: "3", Name: "Edda", Roles: []string{"Editor"}, Permissions: platform.Permissions{ManageManifests: true}},
	"super editor":  {Roles: []string{"Super Editor"}, Permissions: platform.Permissions{ManageManifests: true}},
	"author":        {Roles: []string{"Author"}},
	"contributor":   {Roles: []string{"Contributor"}},
}

// HasSession takes every cookie for a session.
func (*Platform) HasSession(cookie string) bool { return cookie != "" }

// HasToken takes everything for a token.
func (*Platform) HasToken(authorization string) bool { return authorization != "" }

// CheckToken lets "token" in.
func (p *Platform) CheckToken(ctx context.Context, authorization string) error {
	return p.call(ctx, "checktoken", authorization, func() error {
		p.asked[authorization]++
		if authorization != "token" {
			return platform.ErrNotStaff
		}
		return nil
	})
}

// Staff finds a visitor in [Staff].
func (p *Platform) Staff(ctx context.Context, visitor platform.Visitor) (member platform.StaffMember, err error) {
	err = p.call(ctx, "staff", visitor.Cookie, func() error {
		p.Visitor = visitor
		p.asked[visitor.Cookie+" "+visitor.Origin]++
		var ok bool
		if member, ok = Staff[strings.ToLower(strings.TrimPrefix(visitor.Cookie, "session="))]; !ok {
			return platform.ErrNotStaff
		}
		return nil
	})
	return member, err
}

// Asked returns how often each visitor was asked about: by cookie and origin, or by token.
func (p *Platform) Asked() map[string]int {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return maps.Clone(p.asked)
}

// Installed has Themes, for everybody.
func (p *Platform) Installed(ctx context.Context, _ platform.Visitor) (themes []platform.InstalledTheme, err error) {
	err = p.call(ctx, "installed", "", func() error {
		themes = append(themes, p.Themes...)
		return nil
	})
	return themes, err
}

// Locate finds Location.
func (p *Platform) Locate(ctx context.Context, _ []string) (at platform.Location, err error) {
	err = p.call(ctx, "locate", "", func() error {
		at = p.Location
		return nil
	})
	return at, err
}

// Examine finds Examination.
func (p *Platform) Examine(ctx context.Context) (found platform.Examination, err error) {
	err = p.call(ctx, "examine", "", func() error {
		found = p.Examination
		return nil
	})
	return found, err
}

// StaffLimiter has the default rate limit of failed authentication: 30 a minute.
func StaffLimiter(t testing.TB) ratelimit.Limiter {
	t.Helper()
	limiter, err := ratelimit.NewMemory(ratelimit.MemoryConfig{Limit: ratelimit.Limit{Requests: 30, Window: time.Minute}})
	if err != nil {
		t.Fatalf("ratelimit.NewMemory: %v", err)
	}
	return limiter
}
