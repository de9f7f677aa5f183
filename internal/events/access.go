package events

// These are who may register for an event: its access.
const (
	AccessAnyone = "anyone"
	AccessFree   = "free"
	AccessPaid   = "paid"
)

// accessOf is "" if the editor's choice cannot be published. Every reader of the value ignores
// white space around it.
func accessOf(values map[string]any) string {
	switch access := textOf(values, "access"); access {
	case AccessAnyone, AccessFree, AccessPaid:
		return access
	}
	return ""
}
