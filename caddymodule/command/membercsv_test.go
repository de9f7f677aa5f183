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
	"github.com/lychgate/caddy-lychgate/internal/members"
)

// fieldsIn reads a CSV file for a member, who may be nil. Each field is a text.
func fieldsIn(t *testing.T, mode members.Mode, text, encoding string, m *members.Member) (all []string) {
	t.Helper()
	file, err := newMembersCSV(strings.NewReader(text), mode, encoding)
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
		{"columns in capitals", "Email,NAME,Is_Subscribed,GUID\na@example.com,A,FALSE,1\n", members.EmailMode, []string{
			`2 a@example.com: email=a@example.com name="A" is_subscribed=false`,
		}},
		{"a column twice, in another case", "email,Email\n", members.EmailMode, []string{"line 1: the column email is given twice"}},
		{"empty", "", members.EmailMode, []string{"it is empty: its first line names the columns, such as email,name,labels"}},
		{"semicolons", "\"email\";\"name\"\n\"a@example.com\";\"A; B, C\"\n", members.EmailMode, []string{`2 a@example.com: email=a@example.com name="A; B, C"`}},
		{"tabs", "email\tlabels\r\na@example.com\tVIP,crm\r\n", members.EmailMode, []string{`2 a@example.com: email=a@example.com labels=["VIP" "crm"]`}},
		{"the export of Ghost's Admin", "id,email,name,note,subscribed_to_emails,complimentary_plan,stripe_customer_id,created_at,deleted_at,labels,tiers,gift_id\r\n" +
			"65f,a@example.com,A,,false,,,2026-01-01T00:00:00.000Z,,\"VIP,crm\",,\r\n", members.EmailMode, []string{
			`2 a@example.com: email=a@example.com name="A" is_subscribed=false note="" labels=["VIP" "crm"]`,
		}},
		{"a subscription twice", "email,is_subscribed,subscribed_to_emails\n", members.EmailMode, []string{"line 1: the column is_subscribed is given twice"}},
		{"a letter that was lost", "email,name\na@example.com,Jos\ufffd\n", members.EmailMode, []string{
			"2 a@example.com: The name has U+FFFD, where a letter was lost when the file was converted.",
		}},
		{"a column twice", "email,email\n", members.EmailMode, []string{"line 1: the column email is given twice"}},
		{"too many cells", "email,name\na@example.com,A,B\n", members.EmailMode, []string{"record on line 2: wrong number of fields"}},
		{"a quote", "email,name\na@example.com,A\"\n", members.EmailMode, []string{`parse error on line 2, column 16: bare " in non-quoted-field`}},
		{"a long row", "email,name\na@example.com,A\nb@example.com,\"" + strings.Repeat("x", 2*maxRow), members.EmailMode, []string{
			`2 a@example.com: email=a@example.com name="A"`, "the row at line 2, or the one after it, has more than 1048576 bytes: is a quote missing?",
		}},
		{"a long first line", strings.Repeat("x", 2*maxRow), members.EmailMode, []string{"the row at line 1, or the one after it, has more than 1048576 bytes: is a quote missing?"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, fieldsIn(t, test.mode, test.text, "", nil)); diff != "" {
				t.Errorf("fieldsIn (-want +got):\n%s", diff)
			}
		})
	}
}

// Names come through as they were, in whatever encoding a spreadsheet saved them, or the file is refused.
func TestReadMembersInOtherEncodings(t *testing.T) {
	josé := []string{`2 a@example.com: email=a@example.com name="José"`}
	for _, test := range []struct {
		name, text, encoding string
		want                 []string
	}{
		{"UTF-16 by its mark", "\xff\xfee\x00m\x00a\x00i\x00l\x00\t\x00n\x00a\x00m\x00e\x00\r\x00\n\x00a\x00@\x00b\x00.\x00d\x00e\x00\t\x00\xe9\x00\r\x00\n\x00", "", []string{
			`2 a@b.de: email=a@b.de name="é"`,
		}},
		{"UTF-16 without its mark", "\"\x00e\x00m\x00a\x00i\x00l\x00\"\x00\n\x00", "", []string{
			`line 1 is not UTF-8, but looks like utf-16le: save the file as "CSV UTF-8", or convert it with iconv -f utf-16le -t utf-8, or add --encoding utf-16le here`,
		}},
		{"UTF-16 that is named", "e\x00m\x00a\x00i\x00l\x00\n\x00a\x00@\x00b\x00.\x00d\x00e\x00\n\x00", "UTF-16LE", []string{"2 a@b.de: email=a@b.de"}},
		{"Excel's plain CSV", "email,name\nb@example.com,B\na@example.com,Jos\xe9\n", "", []string{
			`2 b@example.com: email=b@example.com name="B"`,
			`line 3 is not UTF-8. It looks like windows-1252, where it says "José": if that is right, convert the file with iconv -f windows-1252 -t utf-8; ` +
				`else save it as "CSV UTF-8", or add --encoding windows-1252 here`,
		}},
		{"that of a Mac", "email,name\na@example.com,M\x9fller\n", "", []string{
			`line 2 is not UTF-8. It looks like macintosh, where it says "Müller": if that is right, convert the file with iconv -f macintosh -t utf-8; ` +
				`else save it as "CSV UTF-8", or add --encoding macintosh here`,
		}},
		{"Cyrillic, in the first line", "email,\xc8\xec\xff\n", "", []string{
			`line 1 is not UTF-8. It looks like windows-1251, where it says "Имя": if that is right, convert the file with iconv -f windows-1251 -t utf-8; ` +
				`else save it as "CSV UTF-8", or add --encoding windows-1251 here`,
		}},
		{"named", "email,name\na@example.com,Jos\xe9\n", "windows-1252", josé},
		{"named, of a Mac", "email;name\ra@example.com;Jos\x8e\r", "macintosh", []string{
			`the lines end with CR alone, as on old Macs: save the file as "CSV UTF-8", or convert it with tr '\r' '\n'`,
		}},
		{"named, of two bytes for a letter", "email,name\na@example.com,\x96\xb3\n", "shift_jis", []string{`2 a@example.com: email=a@example.com name="無"`}},
		{"the wrong name", "email,name\na@example.com,Jos\xe9\n", "shift_jis", []string{"line 2 is not shift_jis: name the encoding that the file has"}},
		{"a name for UTF-8", "email,name\na@example.com,José\n", "windows-1252", []string{"line 2 is UTF-8 already, and not windows-1252: leave the encoding out"}},
		{"a name for UTF-8 with its mark", "\ufeffemail,name\na@example.com,José\n", "windows-1252", josé},
		{"UTF-8 by name", "email,name\na@example.com,José\n", "UTF-8", josé},
		{"no encoding", "email\n", "excel", []string{`there is no encoding "excel": write one such as windows-1252, macintosh, iso-8859-15, utf-16le or shift_jis`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, fieldsIn(t, members.EmailMode, test.text, test.encoding, nil)); diff != "" {
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
		file, err := newMembersCSV(&out, members.CustomIDMode, "")
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
