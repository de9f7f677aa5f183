package members

import (
	"slices"

	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Merge takes over what the platform has of the member. changed is whether that is a
// change. Fields that are pending stay.
func (r Record) Merge(found platform.Member) (after Record, changed bool) {
	after, changed = r.MergeFields(found)
	switch after.Status = found.Status; {
	case found.TierID != "":
		after.TierID = &found.TierID
	case found.Status == "free" && r.Status != "free":
		after.TierID = nil
	}
	changed = changed || after.Status != r.Status ||
		(after.TierID == nil) != (r.TierID == nil) || after.TierID != nil && *after.TierID != *r.TierID
	return after, changed
}

// MergeFields is Merge for the fields that callers of the API can change on the
// platform.
func (r Record) MergeFields(found platform.Member) (after Record, changed bool) {
	after = r
	for _, field := range PlatformFields() {
		if r.HasPending(field) || !r.differs(field, found) {
			continue
		}
		changed = true
		switch field {
		case EmailField:
			after.Email = found.Email
		case NameField:
			after.Name = found.Name
		case NoteField:
			after.Note = found.Note
		case LabelsField:
			after.Labels = asFound(r.Labels, found.Labels)
		case SubscriptionField:
			after.Subscribed = found.Subscribed
			if r.hasOtherNewsletters(found) {
				after.Newsletters = nil // the choice that was made here is no longer the last
			}
		}
	}
	return after, changed
}

// differs reports whether a field is another one on the platform.
func (r *Record) differs(field Field, found platform.Member) bool {
	switch field {
	case EmailField:
		return !emailaddr.Same(r.Email, found.Email)
	case NameField:
		return r.Name != found.Name
	case NoteField:
		return r.Note != found.Note
	case LabelsField:
		return !slices.Equal(asFound(r.Labels, found.Labels), r.Labels)
	}
	return r.Subscribed != found.Subscribed || r.hasOtherNewsletters(found)
}

func (r *Record) hasOtherNewsletters(found platform.Member) bool {
	return r.Newsletters != nil && found.Newsletters != nil && !sameElements(r.ActiveNewsletters(), found.Newsletters)
}

// HasArrived reports whether the platform has all that is pending of a member.
func (r *Record) HasArrived(found platform.Member) bool {
	return !r.Deleted && !slices.ContainsFunc(PlatformFields(), func(f Field) bool { return r.HasPending(f) && r.differs(f, found) })
}

// sameLabels reports whether two sets of labels are the same to the platform,
// which orders them.
func sameLabels(a, b []string) bool { return sameElements(folded(a), folded(b)) }

// asFound is found, but in the order of labels if these are the same labels.
func asFound(labels, found []string) []string {
	if !sameLabels(labels, found) {
		return found
	}
	foundFolded, inOrder := folded(found), make([]string, 0, len(labels))
	for _, label := range folded(labels) {
		inOrder = append(inOrder, found[slices.Index(foundFolded, label)])
	}
	return inOrder
}

func folded(labels []string) []string {
	list := make([]string, 0, len(labels))
	for _, label := range labels {
		list = append(list, fold.Label(label))
	}
	return list
}
