package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/test/dbtest"
)

// Readers join and leave the waiting list of an event that is full, learn how many are ahead, and have the place that becomes free.
func TestReadersWait(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1}`)
	d.site.SendsMail = true
	const isJSON, waiting = "application/json", `{"waiting":true}`
	type brief struct {
		Status  int
		Outcome api.Outcome
		Said    string // of the body, some parts
	}
	said := func(body string) string {
		var parts []string
		for _, part := range []string{
			`"state":"registered"`, `"state":"registration_closed"`, `"state":"can_register"`, `"state":"login_required_free"`, `"since":null`, `"ahead":0`, `"ahead":1`,
			"You are on the waiting list. Ahead of you: 0", "You are on the waiting list. Ahead of you: 1", "If a place becomes free, you will get an email.",
		} {
			if strings.Contains(body, part) {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, " ")
	}
	first := `"state":"registration_closed" "ahead":0 You are on the waiting list. Ahead of you: 0 If a place becomes free, you will get an email.`
	second := `"state":"registration_closed" "ahead":1 You are on the waiting list. Ahead of you: 1 If a place becomes free, you will get an email.`
	for _, step := range []struct {
		name, method, cookie, body string
		want                       brief
	}{
		{"registers, or waits", "PUT", "session=jane", waiting, brief{200, api.Done, `"state":"registered"`}},
		{"another joins", "PUT", "session=john", waiting, brief{200, api.Done, first}},
		{"joins again", "PUT", "session=john", waiting, brief{200, api.Done, first}},
		{"a third joins", "PUT", "session=kate", waiting, brief{200, api.Done, second}},
		{"a guest joins", "PUT", "", waiting, brief{409, api.Rejected, `"state":"registration_closed" "since":null`}},
		{"a fourth registers", "PUT", "session=jake", "", brief{409, api.Rejected, `"state":"registration_closed" "since":null`}},
		{"leaves", "DELETE", "session=kate", waiting, brief{200, api.Done, `"state":"registration_closed" "since":null "ahead":1`}},
		{"leaves again", "DELETE", "session=kate", waiting, brief{200, api.Done, `"state":"registration_closed" "since":null "ahead":1`}},
		{"joins again", "PUT", "session=kate", waiting, brief{200, api.Done, second}},
		{"the first one cancels", "DELETE", "session=jane", "", brief{200, api.Done, `"state":"registration_closed" "since":null "ahead":1`}},
		{"the first in line asks", "GET", "session=john", "", brief{200, api.Done, `"state":"registered"`}},
		{"the second in line asks", "GET", "session=kate", "", brief{200, api.Done, first}},
	} {
		got := d.send(step.method, step.cookie, isJSON, step.body)
		if diff := cmp.Diff(step.want, brief{got.Status, got.Outcome, said(got.Body)}); diff != "" {
			t.Errorf("%s, want -, got +: %s\n%s", step.name, diff, got.Body)
		}
	}
}

// Who can join learns how, and guests what they are asked for there. Buttons and messages are about the waiting list.
func TestReadersLearnHowToJoin(t *testing.T) {
	type how struct {
		State, AskName, Register, Cancel, Keep, Sent string
		JoinAs                                       any
	}
	for name, test := range map[string]struct {
		access, cookie string
		isPaid, waits  bool
		want           how
	}{
		"a member": {access: "free", cookie: "session=john", want: how{
			State: "registration_closed", JoinAs: "can_register", Cancel: "Cancel registration", Keep: "Stay registered",
		}},
		"a guest": {access: "free", want: how{
			State: "registration_closed", JoinAs: "login_required_free", AskName: "optional", Cancel: "Cancel registration", Keep: "Stay registered",
		}},
		"who does not pay": {access: "paid", cookie: "session=john", want: how{
			State: "registration_closed", Cancel: "Cancel registration", Keep: "Stay registered",
		}},
		"a guest of an event for who pays": {access: "paid", want: how{
			State: "registration_closed", Cancel: "Cancel registration", Keep: "Stay registered",
		}},
		"who pays": {access: "paid", cookie: "session=john", isPaid: true, want: how{
			State: "registration_closed", JoinAs: "can_register", Cancel: "Cancel registration", Keep: "Stay registered",
		}},
		"who waits": {access: "free", cookie: "session=john", waits: true, want: how{
			State: "registration_closed", Cancel: "Leave the waiting list", Keep: "Stay on the waiting list",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			db := dbtest.SQLite(t)
			d := newDoor(t, db, fmt.Sprintf(`{"name":"Party","access":%q,"max_attendees":1}`, test.access))
			dbtest.Exec(t, db, `UPDATE events SET shape = '{"fields":["name","access","max_attendees"],"ask_name":"optional"}'`)
			d.members.paid = true
			d.send("PUT", "session=jane", "application/json", "")
			d.members.paid = test.isPaid
			var got struct {
				State   string
				AskName string `json:"ask_name"`
				Labels  struct{ Register, Cancel, Keep, Sent string }
				Waiting map[string]any
			}
			if test.waits {
				d.send("PUT", test.cookie, "application/json", `{"waiting":true}`)
			}
			r, _ := d.ask("GET", "/events/party/registration?lang=en", test.cookie)
			if err := json.Unmarshal([]byte(r.Body), &got); err != nil {
				t.Fatalf("json.Unmarshal of %s: %v", r.Body, err)
			}
			test.want.Register, test.want.Sent = "Join the waiting list", "We have sent an email to *. Open the link in it to join the waiting list."
			is := how{got.State, got.AskName, got.Labels.Register, got.Labels.Cancel, got.Labels.Keep, got.Labels.Sent, got.Waiting["join_as"]}
			if diff := cmp.Diff(test.want, is); diff != "" {
				t.Errorf("want -, got +: %s", diff)
			}
		})
	}
}

// A guest joins by the link of a mail, which registers them if there is a place meanwhile.
func TestGuestsWaitByMail(t *testing.T) {
	d := newDoor(t, dbtest.SQLite(t), `{"name":"Party","access":"free","max_attendees":1}`)
	const isJSON = "application/json"
	d.send("PUT", "session=jane", isJSON, "")
	if got := d.send("POST", "", isJSON, `{"email":"john@example.com"}`); got.Status != 409 || len(d.members.mails) != 0 {
		t.Errorf("who does not want to wait: %+v, %d mails, want 409 and none", got, len(d.members.mails))
	}
	if got := d.send("POST", "", isJSON, `{"email":"john@example.com","waiting":true}`); got.Status != 202 || len(d.members.mails) != 1 {
		t.Fatalf("who wants to wait: %+v, %d mails, want 202 and one", got, len(d.members.mails))
	}
	_, token, _ := strings.Cut(d.members.mails[0].Page, "=")
	for _, step := range []struct{ name, cookie, want string }{
		{"somebody else", "session=jake", `"since":null`},
		{"the guest", "session=john", `"ahead":0`},
	} {
		if got := d.send("PUT", step.cookie, isJSON, fmt.Sprintf(`{"token":%q}`, token)); !strings.Contains(got.Body, step.want) {
			t.Errorf("%s: %+v, want %s", step.name, got, step.want)
		}
	}
}
