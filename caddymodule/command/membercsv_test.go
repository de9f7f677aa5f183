package command

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/members"
)

// fieldsIn reads a CSV file for a member, who may be nil. Each field is a text.
func fieldsIn(t *testing.T, mode members.Mode, text string, m *members.Member) (all []string) {
	t.Helper()
	file, err := newMembersCSV(strings.NewReader(text), mode)
	if err != nil {
		return []string{err.Error()}
	}
	for row, err := range file.rows() {
		if err != nil {
			return append(all, err.Error())
		}
		f, err := row.Fields(m)
		if err != nil {
			all = append(all, fmt.Sprintf("%d %s: %v", row.Line, row.Identifier, err))
			continue
		}
		said := fmt.Sprintf("%d %s:", row.Line, row.Identifier)
		say := func(name string, value any, there bool) {
			if there {
				said += fmt.Sprintf(" %s=%v", name, value)
			}
		}
		if f.Email != nil {
			say("email", *f.Email, true)
		}
		if f.Name != nil {
			said += fmt.Sprintf(" name=%q", *f.Name)
		}
		if f.Subscribed != nil {
			say("is_subscribed", *f.Subscribed, true)
		}
		if f.Note != nil {
			said += fmt.Sprintf(" note=%q", *f.Note)
		}
		if f.Labels != nil {
			said += fmt.Sprintf(" labels=%q", *f.Labels)
		}
		if f.TierID != nil {
			say("tier_id", orEmpty(*f.TierID), true)
		}
		if f.MemberID != nil {
			say("member_id", *f.MemberID, true)
		}
		all = append(all, said)
	}
	return all
}

// A file is read as spreadsheets and CRMs write it.
func TestReadMembersCSV(t *testing.T) {
	for _, test := range []struct {
		name, text string
		mode       members.Mode
		want       []string
	}{
		{"a byte order mark, CRLF and line breaks", "\ufeff\"email\",\"note\"\r\n\"a@example.com\",\"one\r\ntwo \"\"three\"\"\"\r\n\r\nb@example.com,x\r\n", members.EmailMode, []string{
			`2 a@example.com: email=a@example.com note="one\ntwo \"three\""`, `5 b@example.com: email=b@example.com note="x"`,
		}},
		{"columns that are left out, and empty cells", "name,email,labels,tier_id,note,is_subscribed\n, a@example.com ,,,,\n", members.EmailMode, []string{
			`2 a@example.com: email=a@example.com name="" note="" labels=[] tier_id=`,
		}},
		{"labels, and what spreadsheets make of true", "email,labels,is_subscribed\na@example.com,\" VIP ,, crm\",TRUE\nb@example.com,x,false\nc@example.com,x,yes\n", members.EmailMode, []string{
			`2 a@example.com: email=a@example.com is_subscribed=true labels=["VIP" "crm"]`, `3 b@example.com: email=b@example.com is_subscribed=false labels=["x"]`,
			"4 c@example.com: The is_subscribed must be true or false.",
		}},
		{"formulas", "email,name\n'+a@example.com,'=1+1\n", members.EmailMode, []string{`2 +a@example.com: email=+a@example.com name="=1+1"`}},
		{"rows without values", "email,name\n,\na@example.com,A\n,\n", members.EmailMode, []string{`3 a@example.com: email=a@example.com name="A"`}},
		{"by member_id", "member_id,name\nc-1,A\n", members.CustomIDMode, []string{`2 c-1: name="A" member_id=c-1`}},
		{"no end of line", "email\na@example.com", members.EmailMode, []string{"2 a@example.com: email=a@example.com"}},
		{"a member_id of another integration", "member_id,email\nc-1,a@example.com\n", members.EmailMode, []string{"2 a@example.com: email=a@example.com"}},
		{"no identifier", "name\nA\n", members.EmailMode, []string{"line 1: there is no column email, by which the integration knows members"}},
		{"no member_id", "email\na@example.com\n", members.CustomIDMode, []string{"line 1: there is no column member_id, by which the integration knows members"}},
		{"empty", "", members.EmailMode, []string{"it is empty: its first line names the columns, such as email,name,labels"}},
		{"semicolons", "email;name\n", members.EmailMode, []string{"line 1: the columns have semicolons between them: save the file with commas"}},
		{"a column twice", "email,email\n", members.EmailMode, []string{"line 1: the column email is given twice"}},
		{"too many cells", "email,name\na@example.com,A,B\n", members.EmailMode, []string{"record on line 2: wrong number of fields"}},
		{"a quote", "email,name\na@example.com,A\"\n", members.EmailMode, []string{`parse error on line 2, column 16: bare " in non-quoted-field`}},
		{"a long row", "email,name\na@example.com,A\nb@example.com,\"" + strings.Repeat("x", 2*maxRow), members.EmailMode, []string{
			`2 a@example.com: email=a@example.com name="A"`, "the row at line 2, or the one after it, has more than 1048576 bytes: is a quote missing?",
		}},
		{"a long first line", strings.Repeat("x", 2*maxRow), members.EmailMode, []string{"the row at line 1, or the one after it, has more than 1048576 bytes: is a quote missing?"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, fieldsIn(t, test.mode, test.text, nil)); diff != "" {
				t.Errorf("fieldsIn (-want +got):\n%s", diff)
			}
		})
	}
}

// What an export has of a member is no change, whatever is in it.
func TestExportedIsNoChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("'=+-@a ,;\"\t\r\n\\")))
		m := members.Member{
			GUID: "g", Email: "a@example.com", Name: text.Draw(t, "name"), Note: text.Draw(t, "note"), Subscribed: rapid.Bool().Draw(t, "subscribed"),
			Labels: rapid.SliceOf(text).Draw(t, "labels"), MemberID: "c-" + text.Draw(t, "member_id"), Status: "free",
		}
		var out bytes.Buffer
		buffered := bufio.NewWriter(&out)
		if err := csvFormat(buffered)(membersapi.NewMemberRecord(m)); err != nil {
			t.Fatalf("csvFormat(buffered): %v", err)
		}
		if err := buffered.Flush(); err != nil {
			t.Fatalf("buffered.Flush: %v", err)
		}
		file, err := newMembersCSV(&out, members.CustomIDMode)
		if err != nil {
			t.Fatalf("newMembersCSV: %v", err)
		}
		for row, err := range file.rows() {
			if err != nil {
				t.Fatalf("rows: %v", err)
			}
			if f, err := row.Fields(&m); err != nil || !f.AreNone() {
				t.Fatalf("%+v, %v, of %q", f, err, out.String())
			}
		}
	})
}
