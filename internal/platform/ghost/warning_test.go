package ghost

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// A notice becomes the first of the theme's warnings, wherever Ghost's response has or lacks
// them, and nothing else of the response changes. What a theme's author wrote is no HTML.
func TestNoticeInGhostsAnswer(t *testing.T) {
	notice := &platform.UploadNotice{
		Title: "Theme manifest: <b>1</b> finding", Meaning: `Events & "Curation" <script>`,
		Findings: []platform.NoticedFinding{{Where: "events.<img onerror=alert(1)>", Message: "</script> is no type"}},
	}
	const added = `{"fatal":false,"level":"warning","rule":"Theme manifest: \u0026lt;b\u0026gt;1\u0026lt;/b\u0026gt; finding",` +
		`"details":"Events \u0026amp; \u0026#34;Curation\u0026#34; \u0026lt;script\u0026gt;",` +
		`"failures":[{"ref":"events.\u003cimg onerror=alert(1)\u003e","message":"\u003c/script\u003e is no type"}],"code":"theme-manifest"}`
	for response, want := range map[string]string{
		`{"themes":[{"name":"a"}]}`:                                     `{"themes":[{"warnings":[ADDED],"name":"a"}],"_errors":[1]}`,
		" {\n\"meta\": {}, \"themes\": [ {\n\"name\":\"a\"}\n] } ":      "{\n\"meta\": {}, \"themes\": [ {\"warnings\":[ADDED],\n\"name\":\"a\"}\n] ,\"_errors\":[1]}",
		`{"themes":[{"name":"a","warnings":[]}]}`:                       `{"themes":[{"name":"a","warnings":[ADDED]}],"_errors":[1]}`,
		`{"themes":[{"name":"a","warnings": null ,"active":true}]}`:     `{"themes":[{"name":"a","warnings": [ADDED] ,"active":true}],"_errors":[1]}`,
		`{"themes":[{"warnings":[ {"rule":"é"},{}],"name":"a"}],"b":1}`: `{"themes":[{"warnings":[ADDED, {"rule":"é"},{}],"name":"a"}],"b":1,"_errors":[1]}`,
		`{"themes":[{"name":"a","templates":[{"warnings":[7]}]}]}`:      `{"themes":[{"warnings":[ADDED],"name":"a","templates":[{"warnings":[7]}]}],"_errors":[1]}`,
		`{"themes":[{"name":"a","warnings":[7],"warnings":[8]}]}`:       `{"themes":[{"name":"a","warnings":[7],"warnings":[ADDED,8]}],"_errors":[1]}`,
		`{"themes":[{"name":"a","warnings":"none"}]}`:                   `{"themes":[{"name":"a","warnings":"none"}],"_errors":[1]}`,
		`{"themes":[],"Themes":[{"name":"a"}]}`:                         `{"themes":[],"Themes":[{"name":"a"}],"_errors":[1]}`,
		`{"Themes":[{"name":"a"}]}`:                                     `{"Themes":[{"name":"a"}],"_errors":[1]}`,
	} {
		if _, err := new(Client).ReadUploaded([]byte(response)); err != nil {
			t.Fatalf("ReadUploaded of %s: %v", response, err)
		}
		got := string(new(Client).AddFindings([]byte(response), []byte("[1]"), notice))
		if diff := cmp.Diff(strings.ReplaceAll(want, "ADDED", added), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", response, diff)
		}
	}
}
