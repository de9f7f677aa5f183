package platformtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/lib/ratelimit"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

var administrator = platform.Permissions{UploadThemes: true, ManageManifests: true, Administer: true}

// Staff are those that a Platform knows, by their role in lower case. The cookie of a session
// is session= and the role, or the role alone.
var Staff = map[string]platform.StaffMember{
	"owner":         {ID: "1", Name: "Olga", Roles: []string{"Owner"}, Permissions: administrator},
	"administrator": {ID: "2", Name: "Adam", Roles: []string{"Administrator"}, Permissions: administrator},
	"editor":        {ID: "3", Name: "Edda", Email: "edda@example.com", Roles: []string{"Editor"}, Permissions: platform.Permissions{ManageManifests: true}},
	"super editor":  {Roles: []string{"Super Editor"}, Permissions: platform.Permissions{ManageManifests: true}},
	"author":        {Roles: []string{"Author"}},
	"contributor":   {Roles: []string{"Contributor"}},
}

// staff are the members of [Staff].
type staff struct {
	*faults

	Visitor platform.Visitor // of the last Staff
	asked   map[string]int
}

// StaffSession takes every cookie for a session.
func (*staff) StaffSession(cookie string) string { return cookie }

// HasToken takes everything for a token.
func (*staff) HasToken(authorization string) bool { return authorization != "" }

// CheckToken lets "token" in.
func (s *staff) CheckToken(ctx context.Context, authorization string) error {
	return s.call(ctx, "checktoken", authorization, func() error {
		s.asked[authorization]++
		if authorization != "token" {
			return platform.ErrNotStaff
		}
		return nil
	})
}

// Staff finds a visitor in [Staff].
func (s *staff) Staff(ctx context.Context, visitor platform.Visitor) (member platform.StaffMember, err error) {
	err = s.call(ctx, "staff", visitor.Cookie, func() error {
		s.Visitor = visitor
		s.asked[visitor.Cookie+" "+visitor.Origin]++
		var ok bool
		if member, ok = Staff[strings.ToLower(strings.TrimPrefix(visitor.Cookie, "session="))]; !ok {
			return platform.ErrNotStaff
		}
		return nil
	})
	if err != nil && !errors.Is(err, platform.ErrNotStaff) {
		err = fmt.Errorf("%w: %w", platform.ErrUnanswered, err)
	}
	return member, err
}

// Asked counts the calls about each visitor. The keys are a cookie and an origin with a space
// between them, or a token.
func (s *staff) Asked() map[string]int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return maps.Clone(s.asked)
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
