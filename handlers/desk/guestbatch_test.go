package desk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// field is what a form of a page sends under a name, and the last one that has it.
func (s shown) field(name string) (value string) {
	for _, kind := range []string{"input", "textarea"} {
		for e := range elements(s.body, kind) {
			if attribute(e, "name") != name {
				continue
			}
			value = attribute(e, "value")
			if kind == "textarea" {
				value = ""
				if e.FirstChild != nil {
					value = e.FirstChild.Data
				}
			}
		}
	}
	return value
}

// hidden is the list that a page asks about, and the lines that stay.
func (s shown) hidden() []string {
	var fields []string
	for e := range elements(s.body, "textarea") {
		if name := attribute(e, "name"); attribute(e, "id") == "" && e.FirstChild != nil {
			fields = append(fields, name, e.FirstChild.Data)
		}
	}
	if s.field("over") != "" {
		fields = append(fields, "over", "1")
	}
	return fields
}

func (h *harness) says(what string, got shown, lines string, says ...string) {
	h.T.Helper()
	for _, part := range says {
		if !strings.Contains(got.Text, part) {
			h.T.Errorf("%s: %s, want %s", what, got.Text, part)
		}
	}
	if diff := cmp.Diff(lines, got.field("lines")); diff != "" || got.Status != 200 {
		h.T.Errorf("%s: %d, what stays in the field, want -, got +: %s", what, got.Status, diff)
	}
}

// An editor sees whom a list names before anybody is added, and then what became of each. What was not done stays in the
// field, and one more press goes on.
func TestSeveralGuests(t *testing.T) {
	h, e, _ := withParty(t)
	ask := func(do string, fields ...string) shown {
		return h.post("guest-list", "Editor", append([]string{"event", e.ID, "do", do}, fields...)...)
	}
	h.says("nothing", ask("read"), "", "Nobody can be added Write the email address of a guest on each line.")
	h.says("too much", ask("read", "lines", strings.Repeat("x", 300<<10)), "", "The list has more than 256 KB. Add it in parts.")
	if got := ask("several", "guests", strings.Repeat("joe@example.com\tJoe\n", 501)); got.Status != 400 || h.tally(e.ID).Registered != 1 {
		t.Errorf("more than are shown at once: %d, want 400 and nobody added", got.Status)
	}
	const list = "Joe <joe@example.com>\njane@example.com\nnobody\nJOE@example.com\nMax\tmax@example.com\nAnn, ann@example.com"
	read := ask("read", "lines", list)
	h.says("read", read, list, "Add 3 guests? There is 1 place left. The page asks once more before it adds anybody over the limit. 1 line repeats a guest who is on the list already. 1 line is left out, and stays in the field: nobody There is no email address.",
		"Joe joe@example.com Max max@example.com Ann ann@example.com", "Add 3 guests Do not add 1 is registered already, and left out jane@example.com")
	h.says("nobody new", ask("read", "lines", "jane@example.com"), "jane@example.com", "Nobody is added 1 is registered already, and left out jane@example.com")
	const export = "Email,Name,Cancelled (UTC)\n\"joe@example.com\",\"Joe\",\"2031-03-03 10:11:12\"\n\"max@example.com\",\"Max\",\"\""
	h.says("a guest list", ask("read", "lines", export), export, "Add 1 guest? There is 1 place left. 1 guest cancelled, as the list says, and is left out. Max max@example.com")
	if diff := cmp.Diff(registration.Tally{Registered: 1, Most: 2}, h.tally(e.ID)); diff != "" {
		t.Errorf("before it is confirmed, want -, got +: %s", diff)
	}

	full := ask("several", read.hidden()...)
	h.says("the places are taken", full, "nobody\nMax <max@example.com>\nAnn <ann@example.com>", "1 guest was added.", "Add 2 guests over the limit? All 2 places are taken. The places of others stay as they are.")

	h.Ghost.BreakCalls(errors.New("no answer"), "find")
	away := ask("several", full.hidden()...)
	h.says("Ghost is away", away, "nobody\nMax <max@example.com>\nAnn <ann@example.com>", "Nobody was added.", "2 guests are left Ghost does not answer as it should.", "Go on with 2 guests")
	h.Ghost.Fix()
	h.Ghost.BreakCalls(&platform.Refusal{Reason: "Not her."}, "create")
	refused := ask("several", append(away.hidden(), "over", "1")...)
	h.says("Ghost refuses", refused, "Max <max@example.com>\nAnn <ann@example.com>\nnobody", "Nobody was added. 2 could not be added.", "Max <max@example.com> Ghost refuses the member: Not her.")
	h.Ghost.Fix()
	h.says("the end", ask("several", "guests", "max@example.com\tMax\njane@example.com\t\nann@example.com\tAnn\n", "over", "1"), "", "2 guests were added. 1 is registered already.", "More are registered than there are places: 4 of 2.")

	if _, err := h.Events.Cancel(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("h.Events.Cancel: %v", err)
	}
	if got := ask("several", "guests", "kim@example.com\tKim\n"); !strings.Contains(got.Text, "The event is cancelled, so nobody can be added.") || h.tally(e.ID).Registered != 4 {
		t.Errorf("the event is cancelled meanwhile: %s, want that it is", got.Text)
	}
	if err := h.Events.Delete(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("h.Events.Delete: %v", err)
	}
	if got := ask("several", "guests", "kim@example.com\tKim\n"); got.Status != 404 {
		t.Errorf("the event is deleted meanwhile: %d, want 404", got.Status)
	}
}

// Where the time does not suffice, the page lists those who were not reached, and one more press adds them.
func TestSeveralGuestsInLittleTime(t *testing.T) {
	h, e, _ := withParty(t)
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second) // less than adding one may take
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "https://news.example.com"+path+"guest-list", strings.NewReader(formOf("event", e.ID, "do", "several", "guests", "joe@example.com\tJoe\nmax@example.com\t\n")))
	r.Header.Set("Cookie", "Editor")
	r.Header.Set("Origin", "https://news.example.com")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.Desk.Serve(w, r, h.Site, netip.MustParseAddr("192.0.2.1"))
	got := h.read(w)
	h.says("no time", got, "Joe <joe@example.com>\nmax@example.com", "Nobody was added.", "2 guests are left Ghost takes its time, so they were not reached yet.")
	h.says("again", h.post("guest-list", "Editor", append([]string{"event", e.ID, "do", "several", "over", "1"}, got.hidden()...)...), "", "2 guests were added.")
}

// A file that a spreadsheet has saved is read, and what was not shows why.
func TestGuestsOfFile(t *testing.T) {
	h, e, _ := withParty(t)
	for name, test := range map[string]struct{ file, lines, says string }{
		"Excel's":    {"Name;E-Mail\r\nJ\xf6rg;joerg@example.com\r\n", "Jörg <joerg@example.com>", "Add 1 guest? The file is not UTF-8, and was read as windows-1252. Look at the names with accents. There is 1 place left. Jörg joerg@example.com"},
		"a workbook": {"PK\x03\x04\x00\x00", "", "The file cannot be read. Save it as CSV, or copy its cells into the field."},
		"large":      {strings.Repeat("x", 600<<10), "", "The list has more than 256 KB. Add it in parts."},
		"none":       {"", "", "Nobody can be added"},
	} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for _, pair := range [][2]string{{"event", e.ID}, {"do", "read"}, {"lines", ""}} {
			if err := form.WriteField(pair[0], pair[1]); err != nil {
				t.Fatalf("form.WriteField: %v", err)
			}
		}
		file, err := form.CreateFormFile("file", "guests.csv")
		if err != nil {
			t.Fatalf("form.CreateFormFile: %v", err)
		}
		fmt.Fprint(file, test.file)
		if err := form.Close(); err != nil {
			t.Fatalf("form.Close: %v", err)
		}
		got := h.read(h.ask("POST", path+"guest-list", "Editor", body.String(), "Content-Type", form.FormDataContentType()))
		h.says(name, got, test.lines, test.says)
	}
	if got := h.ask("POST", path+"guest-list", "Editor", "--x\r\nno form", "Content-Type", "multipart/form-data; boundary=x"); got.Code != 400 {
		t.Errorf("what is no form: %d, want 400", got.Code)
	}
}

// At the door, somebody who is on no list is added and checked in by one press, with an email or without one.
func TestWalkInsAtTheDoor(t *testing.T) {
	h, e, _ := withParty(t)
	for _, step := range []struct {
		name, page string
		fields     []string
		says       string
	}{
		{"nobody", "check-in", nil, "Write an email, or a name for somebody without one."},
		{"a name", "check-in", []string{"name", "Joe", "key", "1"}, "Joe is checked in."},
		{"sent twice", "check-in", []string{"name", "Joe", "key", "1"}, "1 of 2 checked in"},
		{"who is registered", "check-in", []string{"email", "jane@example.com"}, "Jane is checked in."},
		{"over the limit", "check-in", []string{"name", "Max", "key", "2"}, "Add Max over the limit? All 2 places are taken."},
		{"over the limit, meant so", "check-in", []string{"name", "Max", "key", "2", "over", "1"}, "3 of 3 checked in"},
		{"no email", "check-in", []string{"name", "Max", "email", "max", "over", "1"}, "The email is not a valid address."},
		{"on the guest list, by Enter", "guest-list", []string{"do", "add", "name", "Kim", "over", "1"}, "Write an email, or press Add without email."},
		{"with an email after all", "guest-list", []string{"do", "add-name", "name", "Kim", "email", "kim@example.com", "over", "1"}, "There is an email. Press Add, or remove the email."},
		{"on the guest list, over the limit", "guest-list", []string{"do", "add-name", "name", "<b>Kim"}, "Add <b>Kim over the limit?"},
		{"on the guest list", "guest-list", []string{"do", "add-name", "name", "<b>Kim", "over", "1"}, "<b>Kim was added."},
	} {
		if step.page == "check-in" {
			step.fields = append(step.fields, "do", "walk-in")
		}
		got := h.post(step.page, "Editor", append([]string{"event", e.ID}, step.fields...)...)
		if got.Status != 200 || !strings.Contains(got.Text, step.says) || strings.Contains(got.Text, "A deleted member") {
			t.Errorf("%s: %d %s, want %s", step.name, got.Status, got.Text, step.says)
		}
	}
	if diff := cmp.Diff(registration.Tally{Registered: 4, CheckedIn: 3, Most: 2}, h.tally(e.ID)); diff != "" || len(h.Ghost.IDs()) != 1 {
		t.Errorf("%d members, want Jane alone; the counts, want -, got +: %s", len(h.Ghost.IDs()), diff)
	}
	for page, do := range map[string]string{"check-in": "walk-in", "guest-list": "add"} {
		if got := h.post(page, "Editor", "event", e.ID, "do", do, "name", "Eve", "email", "eve", "key", "4711"); got.field("key") != "4711" {
			t.Errorf("%s again after a failure: the key is %q, want the one before", page, got.field("key"))
		}
	}
	for role, want := range map[string]int{"Author": 403, "": 401} {
		for page, do := range map[string]string{"check-in": "walk-in", "guest-list": "several"} {
			if got := h.post(page, role, "event", e.ID, "do", do, "name", "Joe", "guests", "joe@example.com"); got.Status != want {
				t.Errorf("%s of %s as %q: %d, want %d", do, page, role, got.Status, want)
			}
		}
	}
	if got := h.ask("POST", path+"check-in", "Editor", formOf("event", e.ID, "do", "walk-in", "name", "Eve"), "Origin", "https://evil.example"); got.Code != 403 {
		t.Errorf("from a page of another site: %d, want 403", got.Code)
	}
	if _, err := h.Events.Cancel(t.Context(), "daily", e.ID, 0); err != nil {
		t.Fatalf("h.Events.Cancel: %v", err)
	}
	got := h.post("check-in", "Editor", "event", e.ID, "do", "walk-in", "name", "Eve")
	if want := registration.ErrEventCancelled; !strings.Contains(got.Text, "The event is cancelled, so nobody can be added.") || strings.Contains(got.Text, "Walk-in") {
		t.Errorf("once the event is cancelled: %s, want %v", got.Text, want)
	}
}
