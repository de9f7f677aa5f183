package members

import (
	"context"
	"slices"
	"strings"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
)

// This file is about placeholders: the addresses of members whose email another member
// had when they were created (docs/members_api.md#placeholders). No mail is sent to one.

// PlaceholderDomain is the domain of placeholders where an integration has no other. No
// mail arrives there (RFC 2606, section 2).
const PlaceholderDomain = "members.invalid"

// ErrPlaceholder means that a write would have mail sent to a placeholder.
var ErrPlaceholder error = &InvalidError{
	"The email is a placeholder, which never gets mail: is_subscribed must be false, and no newsletter active.", CodePlaceholder,
}

// longestLocal bounds the part of an address before the at-sign (RFC 5321, section 4.5.3.1.1).
const longestLocal = 64

// placeholders are the addresses to try for a new member whose email is taken, in this
// order. The second is unique where the member ID alone does not make it so.
func (r *Record) placeholders() []string {
	if r.Placeholder == "" {
		return nil
	}
	local, domain, _ := strings.Cut(r.Placeholder, "@")
	return []string{r.Placeholder, local[:min(len(local), longestLocal-len(r.GUID)-1)] + "-" + r.GUID + "@" + domain}
}

// NextPlaceholder gives a new member whose email is taken a placeholder, or the next one, and
// unsubscribes it. It reports false if there is none.
func (r *Record) NextPlaceholder() bool {
	rest := r.placeholders()
	if used := slices.IndexFunc(rest, func(address string) bool { return emailaddr.Same(address, r.Email) }); used >= 0 {
		rest = rest[used+1:]
	}
	if len(rest) == 0 {
		return false
	}
	r.Email = rest[0]
	r.MarkNamed(EmailField)
	r.unsubscribe()
	return true
}

// placeholder is empty if the integration allows no duplicates. Of the member ID it keeps what needs
// no quotes in an address (RFC 5322, section 3.2.3), but for rare characters.
func (i Integration) placeholder(memberID string) string {
	if !i.allowsDuplicates() {
		return ""
	}
	safe := []byte(strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.ContainsRune("-_+.", c):
			return c
		}
		return '-'
	}, memberID))
	safe = safe[:min(len(safe), longestLocal)]
	for i, c := range safe {
		if c == '.' && (i == 0 || i == len(safe)-1 || safe[i-1] == '.') {
			safe[i] = '-'
		}
	}
	return string(safe) + "@" + i.PlaceholderDomain
}

func (r *Record) unsubscribe() {
	if r.Subscribed || r.Newsletters != nil {
		r.Subscribed, r.Newsletters = false, nil
		r.MarkNamed(SubscriptionField)
	}
}

// silence unsubscribes a new member whose email is a placeholder. Errors:
// ErrPlaceholder, if the caller asked for a subscription.
func (s *Service) silence(ctx context.Context, i Integration, r *Record) error {
	if !r.Subscribed {
		return nil
	}
	is, err := s.isPlaceholder(ctx, i, r.Email)
	if err != nil || !is {
		return err
	}
	if r.Named[SubscriptionField] != 0 {
		return ErrPlaceholder
	}
	r.unsubscribe()
	return nil
}

// checkSilent refuses a write that subscribes a placeholder, or gives one to a member who
// is subscribed, with ErrPlaceholder. One that names neither leaves a member as the
// platform's staff want it.
func (s *Service) checkSilent(ctx context.Context, i Integration, before, after Record) error {
	isNamed := after.Named[SubscriptionField] != before.Named[SubscriptionField] || emailaddr.Key(after.Email) != emailaddr.Key(before.Email)
	if !after.Subscribed || !isNamed || after.Deleted {
		return nil
	}
	is, err := s.isPlaceholder(ctx, i, after.Email)
	if is && err == nil {
		err = ErrPlaceholder
	}
	return err
}

// isPlaceholder reports whether an address is at a domain where an integration of the
// site makes placeholders: the one that asks, one of the configuration, or one in the
// store.
func (s *Service) isPlaceholder(ctx context.Context, i Integration, email string) (bool, error) {
	domain := domainOf(email)
	if domain == PlaceholderDomain || i.makesAt(domain) {
		return true, nil
	}
	for _, declared := range s.Declared {
		if declared.makesAt(domain) {
			return true, nil
		}
	}
	if s.Integrations == nil {
		return false, nil
	}
	return s.domains.has(ctx, s.Integrations, s.Site, s.Now(), domain)
}
