package ghost

import "testing"

// A CRM is told which members pay, and which need not.
func TestStatusSaysWhichMembersPay(t *testing.T) {
	for of, want := range map[string]string{"free": "free", "paid": "paid", "comped": "complimentary", "gift": "complimentary", "": "free", "other": "free"} {
		if got := status(of); got != want {
			t.Errorf("status(%q) = %q, want %q", of, got, want)
		}
	}
}
