package ghost

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
)

// An operator learns whether Ghost's events arrive before a change is missed, and
// nothing of the test is left in Ghost.
func TestTestEvents(t *testing.T) {
	client := newClient(t, realConfig(t))
	status := http.StatusAccepted
	url := ""
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("io.ReadAll: %v", err)
		}
		id, err := client.ReadEvent(url, r.Header.Get(client.SignatureHeader()), body, time.Now())
		if id != "" {
			return // about a member of another test
		}
		if err != nil {
			t.Errorf("the event of a test is not read: %v", err)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(sink.Close)
	url = sink.URL + "/" + unique("token")
	for _, test := range []struct {
		name    string
		status  int
		missing bool
		want    string
	}{
		{"the first time nothing is registered", http.StatusAccepted, true, ""},
		{"an edge that answers", http.StatusAccepted, false, ""},
		{"a server that says yes to anything", http.StatusOK, false, "the event did not arrive: it was answered with 200, which is not how an edge answers"},
		{"a host that is somebody else's", http.StatusNotFound, false, "the event did not arrive: it was answered with 404, which is not how an edge answers"},
		{"an edge of another configuration", http.StatusGone, false, "the event did not arrive: it was answered with 410, by an edge of another configuration or store"},
	} {
		status = test.status
		missing, err := client.TestEvents(t.Context(), url)
		for i := 0; i < 5 && strings.Contains(textOf(err), "did not send it within"); i++ { // a busy Ghost takes longer
			var isMissing bool
			isMissing, err = client.TestEvents(t.Context(), url)
			missing = missing || isMissing
		}
		if text := textOf(err); text != test.want || missing != test.missing {
			t.Errorf("%s: missing %v, %q", test.name, missing, text)
		}
	}
	sink.Close()
	if _, err := client.TestEvents(t.Context(), url); textOf(err) != "the event did not arrive: Ghost says: Request failed: ECONNREFUSED" {
		t.Errorf("nobody listens: %v", err)
	}

	var left struct {
		Tags []struct{ Name string } `json:"tags"`
	}
	if err := client.tags.call(t.Context(), http.MethodGet, "/tags/", map[string][]string{"limit": {"100"}}, nil, &left); err != nil {
		t.Fatalf("client.tags.call: %v", err)
	}
	for _, tag := range left.Tags {
		if strings.HasPrefix(tag.Name, testTag) {
			t.Errorf("the tag %s is left", tag.Name)
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The version is Ghost's own, and its clock is this machine's.
func TestExamineTellsVersionAndClock(t *testing.T) {
	client := newClient(t, realConfig(t))
	got, err := client.Examine(t.Context())
	if err != nil || !strings.HasPrefix(got.Name, "Ghost ") || got.Ahead.Abs() > time.Minute {
		t.Errorf("Examine: got %+v, %v, want the name to begin with Ghost, and a clock within a minute", got, err)
	}
	stranger := realConfig(t)
	stranger.AdminKey = testKey
	_, err = newClient(t, stranger).Examine(t.Context())
	const want = "admin_key is not accepted, so copy the Admin API key of a custom integration from Ghost's settings: "
	if !strings.HasPrefix(textOf(err), want) {
		t.Errorf("a key of another Ghost: %v", err)
	}
}

// A clock that is wrong and a server that is not Ghost are told apart from a wrong
// key, which looks the same to a CRM.
func TestExamineWhatAnswers(t *testing.T) {
	type response struct {
		status int
		body   string
		ahead  time.Duration
	}
	config := `{"config":{"version":"6.22.0"}}`
	for _, test := range []struct {
		name     string
		response response
		want     platform.Examination
		err      string
	}{
		{"Ghost", response{200, config, 0}, platform.Examination{Name: "Ghost 6.22.0"}, ""},
		{"its clock is fast", response{200, config, time.Hour}, platform.Examination{Name: "Ghost 6.22.0", Ahead: time.Hour}, ""},
		{"its clock is slow", response{200, config, -90 * time.Second}, platform.Examination{Name: "Ghost 6.22.0", Ahead: -90 * time.Second}, ""},
		{"another server", response{200, `{}`, 0}, platform.Examination{}, "what answers is not Ghost: it has no version"},
		{
			"a token that is old there",
			response{401, `{"errors":[{"type":"UnauthorizedError","code":"INVALID_JWT","message":"Invalid token: maxAge exceeded"}]}`, 0},
			platform.Examination{},
			"one of the two clocks is wrong, because Ghost takes the token for an old one: Ghost answers 401 UnauthorizedError INVALID_JWT Invalid token: maxAge exceeded",
		},
		{"in trouble", response{500, ``, 0}, platform.Examination{}, "Ghost answers 500"},
	} {
		ghost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(test.response.ahead).UTC().Format(http.TimeFormat))
			w.WriteHeader(test.response.status)
			_, _ = io.WriteString(w, test.response.body)
		}))
		got, err := newClient(t, Config{URL: ghost.URL, AdminKey: testKey}).Examine(t.Context())
		ghost.Close()
		within := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() <= 10*time.Second })
		if diff := cmp.Diff(test.want, got, within); diff != "" || textOf(err) != test.err {
			t.Errorf("%s: got error %v, want %q; (-want +got):\n%s", test.name, err, test.err, diff)
		}
	}
}

// What Ghost says of an event is passed on.
func TestTestEventsThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		triggered, want string
	}{
		"an answer": {`"last_triggered_at":"now","last_triggered_status":"301"`, "the event did not arrive: it was answered with 301, which is not how an edge answers"},
		"a private address": {
			`"last_triggered_at":"now","last_triggered_status":"500","last_triggered_error":"Request failed: URL_PRIVATE_INVALID"`,
			"the event did not arrive: Ghost sends none to a private or loopback address (URL_PRIVATE_INVALID)",
		},
		"a host without a dot": {
			`"last_triggered_at":"now","last_triggered_status":"500","last_triggered_error":"Request failed: URL_MISSING_INVALID"`,
			"the event did not arrive: Ghost sends none to a host without a dot (URL_MISSING_INVALID)",
		},
		"no answer, no reason": {`"last_triggered_at":"now","last_triggered_status":null`, "the event did not arrive: Ghost says: nothing"},
	} {
		ghost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodDelete:
				w.WriteHeader(http.StatusNoContent)
			case strings.HasSuffix(r.URL.Path, "/tags/"):
				_, _ = io.WriteString(w, `{"tags":[{"id":"t"}]}`)
			default:
				_, _ = io.WriteString(w, `{"webhooks":[{"id":"w",`+test.triggered+`}]}`)
			}
		}))
		_, err := newClient(t, Config{URL: ghost.URL, AdminKey: testKey}).TestEvents(t.Context(), "http://edge/token")
		ghost.Close()
		if textOf(err) != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// What is left after a failure is said, so that an operator can remove it.
func TestTestEventsThatCannotBeRemoved(t *testing.T) {
	ghost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		body := map[string]any{"webhooks": []any{map[string]string{"id": "w", "last_triggered_at": "now", "last_triggered_status": "202"}}, "tags": []any{}}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Errorf("json.NewEncoder(w).Encode: %v", err)
		}
	}))
	t.Cleanup(ghost.Close)
	_, err := newClient(t, Config{URL: ghost.URL, AdminKey: testKey}).TestEvents(t.Context(), "http://edge/token")
	response, ok := errors.AsType[*Error](err)
	if !ok || response.Status != http.StatusInternalServerError || !strings.HasPrefix(err.Error(), "removing what the test has made: ") {
		t.Errorf("TestEvents: got %v, want a status 500 while what the test made is removed", err)
	}
}

// An operator who does not want to wait leaves nothing in Ghost.
func TestTestEventsInterrupted(t *testing.T) {
	client := newClient(t, realConfig(t))
	type event struct{ query, tag string }
	arrived := make(chan event, 100)
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Tag struct{ Current struct{ ID string } }
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		arrived <- event{r.URL.RawQuery, body.Tag.Current.ID}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(sink.Close)
	url := sink.URL + "/" + unique("token")
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*25*time.Millisecond)
		_, _ = client.TestEvents(ctx, url) // the event may have arrived before
		cancel()
	}
	// Ghost sends events to the webhooks in the order in which they were registered, so
	// one that is left would hear of a tag before this one. Of others it may hear late.
	mine := webhooks{[]webhook{{Name: "Lychgate doctor", Event: "tag.added", TargetURL: url + "?mine"}}}
	if err := client.memberClient.call(t.Context(), http.MethodPost, webhooksPath, nil, mine, &mine); err != nil {
		t.Fatalf("client.memberClient.call: %v", err)
	}
	waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := client.causeEvent(t.Context(), waiting, firstWait, mine.Webhooks[0]); err != nil {
		t.Errorf("client.causeEvent: %v", err)
	}
	if err := remove(t.Context(), client.memberClient.api, webhooksPath+mine.Webhooks[0].ID+"/"); err != nil {
		t.Errorf("remove: %v", err)
	}
	others := make(map[string]bool)
	for {
		select {
		case e := <-arrived:
			if e.query != "mine" {
				others[e.tag] = true
				continue
			}
			if e.tag == "" || others[e.tag] {
				t.Errorf("a webhook is left, which hears of the tag %q", e.tag)
			}
			return
		case <-waiting.Done():
			t.Fatal("no event arrives, want one")
		}
	}
}
