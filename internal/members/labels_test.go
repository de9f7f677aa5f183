package members

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// Labels are one or two as Ghost has them, whatever their letters: none is eaten, and none takes another's name.
func TestLabelsAreFoldedAsGhostDoes(t *testing.T) {
	for _, test := range []struct{ asked, want []string }{
		{[]string{"VIP", " vip"}, []string{"VIP"}},
		{[]string{"ſale", "sale"}, []string{"ſale", "sale"}},
		{[]string{"İstanbul", "istanbul"}, []string{"İstanbul", "istanbul"}},
		{[]string{"ΟΔΟΣ", "οδος", "οδοσ"}, []string{"ΟΔΟΣ", "οδοσ"}}, // ς at the end of a word is σ's small letter there
		{[]string{"\u212a", "k", "Å", "å"}, []string{"\u212a", "Å"}}, // the sign for kelvin
		{[]string{"é", "e", "e\u0301"}, []string{"é", "e", "e\u0301"}},
	} {
		var r Record
		(&Fields{Labels: &test.asked}).apply(&r)
		if diff := cmp.Diff(test.want, r.Labels); diff != "" {
			t.Errorf("labels %q are kept as (-want +got):\n%s", test.asked, diff)
		}
		found := platform.Member{}
		for _, label := range slices.Backward(test.want) { // in another order
			found.Labels = append(found.Labels, label)
		}
		after, _ := r.MergeFields(found)
		if diff := cmp.Diff(test.want, after.Labels); diff != "" {
			t.Errorf("labels %q are merged to (-want +got):\n%s", test.asked, diff)
		}
	}
}
