package members

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
)

// Limits of a member's fields, in code points. They are Ghost's, so that a site
// without a platform does not get members that no platform would take.
const (
	maxText   = 191 // email, name, a label, identifiers
	maxNote   = 2000
	maxLabels = 100 // and newsletters
)

// Fields are the fields of a create or an update. A nil field was left out.
type Fields struct {
	Email       *string
	Name        *string
	Subscribed  *bool
	Newsletters *[]Newsletter
	Note        *string
	Labels      *[]string
	TierID      **string // a pointer to nil unlinks the tier
	MemberID    *string

	// GUID is that of a new member. Default: a NewGUID.
	GUID string
}

// CheckNew checks the fields of a new member. Errors: *InvalidError.
func (f *Fields) CheckNew(i Integration) error {
	if f.Email == nil {
		return invalid("The email is required.")
	}
	if i.Mode == CustomIDMode {
		switch {
		case f.MemberID == nil || *f.MemberID == "":
			return invalid("The member_id is required.")
		case !isText(*f.MemberID):
			return invalid("The member_id must be text of %d characters at most, without control characters.", maxText)
		}
	}
	return f.Check()
}

// Check checks the fields that are there. Errors: *InvalidError.
func (f *Fields) Check() error {
	if f.Email != nil {
		if err := checkEmail(*f.Email); err != nil {
			return err
		}
	}
	if f.Name != nil && !isText(*f.Name) {
		return invalid("The name must be text of %d characters at most, without control characters.", maxText)
	}
	if f.Note != nil && (utf8.RuneCountInString(*f.Note) > maxNote || !utf8.ValidString(*f.Note) || strings.ContainsRune(*f.Note, 0)) {
		return invalid("The note must be text of %d characters at most.", maxNote)
	}
	if f.TierID != nil && *f.TierID != nil && (**f.TierID == "" || !isText(**f.TierID)) {
		return invalid("The tier_id must be null, or text of 1 to %d characters.", maxText)
	}
	if f.Labels != nil {
		if len(*f.Labels) > maxLabels {
			return invalid("There must be %d labels at most.", maxLabels)
		}
		for _, label := range *f.Labels {
			if strings.TrimSpace(label) == "" || !isText(label) {
				return invalid("Each of the labels must be text of 1 to %d characters.", maxText)
			}
		}
	}
	if f.Newsletters != nil {
		if len(*f.Newsletters) > maxLabels {
			return invalid("There must be %d newsletters at most.", maxLabels)
		}
		for _, n := range *f.Newsletters {
			switch {
			case n.ID == "" || !isText(n.ID):
				return invalid("Each of the newsletters needs an id.")
			case n.Status != "" && n.Status != "active" && n.Status != "inactive":
				return invalid("The status of a newsletter must be active or inactive.")
			}
		}
	}
	return nil
}

// apply puts checked fields into a record, and notes that they were named.
func (f *Fields) apply(m *Record) {
	if f.Email != nil {
		m.Email = *f.Email
		m.MarkNamed(EmailField)
	}
	if f.Name != nil {
		m.Name = *f.Name
		m.MarkNamed(NameField)
	}
	if f.Note != nil {
		m.Note = *f.Note
		m.MarkNamed(NoteField)
	}
	if f.TierID != nil {
		m.TierID = *f.TierID
	}
	if f.Labels != nil {
		m.Labels = withoutDoubles(*f.Labels)
		m.MarkNamed(LabelsField)
	}
	if f.Newsletters != nil || f.Subscribed != nil {
		m.MarkNamed(SubscriptionField)
	}
	if f.Newsletters != nil {
		m.Newsletters = *f.Newsletters
		m.Subscribed = slices.ContainsFunc(m.Newsletters, Newsletter.IsActive)
	}
	if f.Subscribed != nil {
		m.Subscribed = *f.Subscribed
		if f.Newsletters == nil {
			m.Newsletters = nil // it is the platform's choice again
		}
	}
}

// withoutDoubles trims labels and leaves out those that are the same to the platform as an earlier one.
func withoutDoubles(labels []string) []string {
	list, there := []string{}, make(map[string]bool)
	for _, label := range labels {
		label = strings.TrimSpace(label)
		if folded := fold.Label(label); !there[folded] {
			there[folded] = true
			list = append(list, label)
		}
	}
	return list
}

func checkEmail(email string) error {
	switch {
	case utf8.RuneCountInString(email) > maxText: // first: it may be a megabyte
		return invalid("The email must have %d characters at most.", maxText)
	case !isText(email) || !emailaddr.IsValid(email):
		return invalid("The email is not a valid address.")
	}
	return nil
}

// isText reports whether s is text of maxText code points at most, without
// control characters.
func isText(s string) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxText &&
		!strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })
}
