package events

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/manifest"
)

// A key that only the manifest knew would have no place in the editor, and one that only the
// table knew could be in no manifest.
func TestTableHasTheFieldsOfTheManifest(t *testing.T) {
	var keys []string
	for _, f := range standardFields {
		if f.with == "" {
			keys = append(keys, f.Key)
		} else if with, ok := StandardField(f.with); !ok || with.with != "" {
			t.Errorf("%s comes with %q, want a field of the manifest", f.Key, f.with)
		}
		if f.Label == "" || f.Kind == "" {
			t.Errorf("%s has the label %q and the kind %q, want both", f.Key, f.Label, f.Kind)
		}
		date, _ := StandardField(f.date)
		if f.Kind == TimeKind && (date == nil || date.Kind != "date") {
			t.Errorf("%s is a time of %q, want a field of the kind date", f.Key, f.date)
		}
	}
	want := manifest.StandardFields()
	slices.Sort(keys)
	slices.Sort(want)
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("fields of the manifest and of the table (-want +got): %s", diff)
	}
}
