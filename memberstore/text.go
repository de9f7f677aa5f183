package memberstore

import (
	"strings"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/members"
)

// checkText fails with ErrNotText if a value cannot be kept: PostgreSQL takes UTF-8
// without U+0000 only, and a store on SQLite is to take no more.
func checkText(values ...string) error {
	for _, value := range values {
		if !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
			return members.ErrNotText
		}
	}
	return nil
}

// checkMember is checkText for what a member says. Labels and newsletters are kept
// as JSON, which escapes what is not text.
func checkMember(m members.Record) error {
	if m.TierID != nil {
		if err := checkText(*m.TierID); err != nil {
			return err
		}
	}
	return checkText(m.Email, m.Name, m.Note, m.Status, m.PlatformID, m.MemberID, m.Sent)
}

// asText replaces in a problem what the store cannot keep. It may have the words of
// others.
func asText(problem string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(problem, "\ufffd"), "\x00", "\ufffd")
}
