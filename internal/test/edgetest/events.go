package edgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// PublicSettings is what a Ghost whose publication is not private says of its settings.
const PublicSettings = `{"settings":[{"key":"is_private","value":false}]}`

// PublicGhost starts what says that its publication is not private, and nothing else, as of a Ghost that does not answer
// any more.
func PublicGhost(t testing.TB) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ghost/api/admin/settings/" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, PublicSettings)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// NewEvents gives the Ghost behind an edge a theme with event types, and takes it away after
// the test, with the posts that have the test's mark in their titles.
func NewEvents(t *testing.T, e *Edge, key string) *Homepage {
	t.Helper()
	h := &Homepage{Edge: e, Unique: GUIDLike(), Owner: e.SignIn(GhostOwner), token: "Ghost " + AdminToken(t, key)}
	h.Theme = "events-" + h.Unique
	before := h.activeTheme()
	post, err := os.ReadFile(ghosttest.Folder(t) + "/content/themes/source/post.hbs")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	theme := SourceZipWith(t, "", map[string]string{
		"custom-webinar.hbs": strings.Replace(string(post), "{{#post}}", "<p>A webinar</p>{{#post}}", 1),
		"lychgate-manifest.yaml": `manifest_version: 1
events:
  default_tags: ["Event ` + h.Unique + `", "#listed-` + h.Unique + `"]
  types:
    webinar:
      post_template: custom-webinar
      tags: [Webinar ` + h.Unique + `]
      required_fields: [name, event_date]
      custom_fields:
        - {key: speaker, type: text, required: true}
`,
	})
	if got := h.UploadTheme(h.Theme, theme, "Cookie", h.Owner); got.Status != http.StatusOK {
		t.Fatalf("uploadTheme = %v, want status 200", got)
	}
	h.Activate(h.Theme)
	t.Cleanup(func() {
		h.Activate(before)
		h.Ghost("DELETE", "/themes/"+h.Theme+"/", "")
		for _, id := range h.IDs("posts", "title:~'"+h.Unique+"'") {
			h.Ghost("DELETE", "/posts/"+id+"/", "")
		}
		for _, id := range h.IDs("tags", "name:~'"+h.Unique+"'") {
			h.Ghost("DELETE", "/tags/"+id+"/", "")
		}
	})
	return h
}

// Event is what the staff's JSON says of an event.
type Event struct {
	ID, Theme, Type, Status string
	Values                  map[string]any
	Revision                int64
	Post                    *struct{ ID, URL, Edit, Status string }
	PostDeleted             bool `json:"post_deleted"`
	Pending                 *struct{ Problem string }
	Problems                []struct{ Field, Message string }

	Tag string
}

// Events asks the staff's JSON about events, and fails the test unless the response has a
// status. Where Ghost takes longer than an editor waits, as on a busy machine, 200 comes later.
func (h *Homepage) Events(status int, method, path, body string, header ...string) (e Event, got Response) {
	h.T.Helper()
	header = append([]string{"Cookie", h.Owner, "Origin", h.Base, "Content-Type", "application/json"}, header...)
	const desk = "/ghost/lychgate/desk/events"
	got, err := h.SendBody(method, desk+path, body, header...)
	if id, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); err == nil && status == 200 && got.Status == 202 && id != "" {
		wait.Until(h.T, func() string {
			if got, err = h.SendBody("GET", desk+"/"+id, "", header...); err != nil || strings.Contains(got.Body, `"pending":{`) {
				return fmt.Sprint(got, err)
			}
			return ""
		})
	}
	if err != nil || got.Status != status {
		h.T.Fatalf("%s %s: got %v, %v, want no error, status %v", method, path, got, err, status)
	}
	if strings.HasPrefix(got.Body, `{"id"`) {
		h.Decode(got.Body, &e)
		e.Tag = got.Header["Etag"]
	}
	return e, got
}

// EventBody is an event of the type webinar, as JSON.
func (h *Homepage) EventBody(values map[string]any) string {
	h.T.Helper()
	text, err := json.Marshal(map[string]any{"theme": h.Theme, "type": "webinar", "values": values})
	if err != nil {
		h.T.Fatalf("json.Marshal: %v", err)
	}
	return string(text)
}

// UpdatedAt is as Ghost writes it.
func (h *Homepage) UpdatedAt(id string) string {
	h.T.Helper()
	var response struct {
		Posts []struct {
			UpdatedAt string `json:"updated_at"`
		}
	}
	h.Decode(h.Ghost("GET", "/posts/"+id+"/", ""), &response)
	return response.Posts[0].UpdatedAt
}
