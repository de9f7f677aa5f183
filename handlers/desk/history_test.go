package desk_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// timeOfDeed is the time of an entry of a history on a page.
var timeOfDeed = regexp.MustCompile(`[0-9]+ [A-Z][a-z]+ [0-9]+, [0-9:]+ UTC :`)

// A slot says who chose its post, no matter who is looking.
func TestHistoryOfASlot(t *testing.T) {
	h := newsroom(t)
	h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "3")
	h.post("curation", "Administrator", "theme", "nightly", "slot", "top/lead", "post", "")
	h.Ghost.BreakCalls(&platform.Refusal{Reason: "The post is locked."}, "tag")
	h.post("curation", "Editor", "theme", "nightly", "slot", "top/lead", "post", "2")
	h.Ghost.Fix()
	var list []string
	for details := range elements(h.get("curation", "Editor").body, "details") {
		if attribute(details, "class") == "history" {
			list = append(list, timeOfDeed.ReplaceAllString(textOf(details), "|"))
		}
	}
	if diff := cmp.Diff("History | Ghost refused it: The post is locked. | Edda chose The second | Adam cleared it | Edda chose The third, on bridges", strings.Join(list, "; ")); diff != "" {
		t.Errorf("the histories of slots (-want +got): %s", diff)
	}
}
