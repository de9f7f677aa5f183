package desk

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/test/lineartest"
)

// briefly has a guest on each line, and after ! those that are wrong.
func briefly(read *guestsRead) (lines []string) {
	for _, g := range read.guests {
		lines = append(lines, g.Name+"|"+g.Email)
	}
	for _, line := range read.wrong {
		lines = append(lines, "! "+line.Text+": "+line.Why)
	}
	if read.gone > 0 {
		lines = append(lines, fmt.Sprint(read.gone, " cancelled"))
	}
	if read.twice > 0 {
		lines = append(lines, fmt.Sprint(read.twice, " twice"))
	}
	return lines
}

// What people paste is understood as they mean it, and what is not says why.
func TestPastedGuests(t *testing.T) {
	const noEmail, invalid = "There is no email address.", "The email is not a valid address."
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":             {" \r\n\t\n", nil},
		"an email":            {" jane@example.com ", []string{"|jane@example.com"}},
		"line breaks":         {"\ufeffjane@example.com\r\njoe@example.com", []string{"|jane@example.com", "|joe@example.com"}},
		"as in mails":         {"Jane Doe <jane@example.com>", []string{"Jane Doe|jane@example.com"}},
		"quoted":              {`"Doe, Jane ""JD""" <jane@example.com>`, []string{`Doe, Jane "JD"|jane@example.com`}},
		"a link":              {"mailto:jane@example.com", []string{"|jane@example.com"}},
		"name first":          {"Jane Doe, jane@example.com", []string{"Jane Doe|jane@example.com"}},
		"name last":           {"jane@example.com;Jane Doe", []string{"Jane Doe|jane@example.com"}},
		"surname first":       {"Doe, Jane <jane@example.com>", []string{"Doe Jane|jane@example.com"}},
		"cells":               {"Jane\tDoe, Ph. D.\tjane@example.com\t+49 30 123", []string{"Jane Doe, Ph. D.|jane@example.com"}},
		"several in a line":   {"Jane <jane@example.com>, joe@example.com; <max@example.com>", []string{"Jane|jane@example.com", "|joe@example.com", "|max@example.com"}},
		"a list of columns":   {"id\temail\tname\tnote\n4711\tjane@example.com\tJane Doe\tasked mum@example.com", []string{"Jane Doe|jane@example.com"}},
		"other columns":       {"Vorname;Nachname;Firma;E-Mail\nJane;Doe;ACME;jane@example.com", []string{"Jane Doe|jane@example.com"}},
		"a full name too":     {"Name,First name,Company name,Email\nJane Doe,Jane,ACME,jane@example.com", []string{"Jane Doe|jane@example.com"}},
		"an empty cell":       {"Email,Name\n,Jane", []string{"! Jane: " + noEmail}},
		"an email column":     {"Company,Email,Name\nACME,jane(at)example.com,Jane\nACME,,", []string{"! Jane <jane(at)example.com>: " + noEmail, "! ACME,,: " + noEmail}},
		"titles below a line": {"\n ,\nName,Company,Email\nJane,ACME,jane@example.com", []string{"Jane|jane@example.com"}},
		"an email at the end": {"Jane Doe jane@example.com", []string{"Jane Doe|jane@example.com"}},
		"an email in front":   {"jane@example.com  Jane Doe", []string{"Jane Doe|jane@example.com"}},
		"a note with one":     {"Jane, jane@example.com, asked mum@example.com", []string{"Jane|jane@example.com"}},
		"emails and a space":  {"jane@example.com joe@example.com", []string{"|jane@example.com", "|joe@example.com"}},
		"our own file":        {"Email,Name,Registered (UTC)\n\"jane@example.com\",\"'=Jane\",\"2031-03-02 10:11:12\"", []string{"=Jane|jane@example.com"}},
		"who cancelled": {
			"Email,Name,Registered (UTC),Added by,Cancelled (UTC),Cancelled by\n\"jane@example.com\",\"Jane\",\"2031-03-02 10:11:12\",\"\",\"\",\"\"\n" +
				"\"joe@example.com\",\"Joe\",\"2031-03-02 10:11:12\",\"\",\"2031-03-03 10:11:12\",\"\"\n",
			[]string{"Jane|jane@example.com", "1 cancelled"},
		},
		"cells of it":         {"Email\tName\tRegistered (UTC)\tCancelled (UTC)\n\tMax\t2031\t\n\tEve\t2031\t2032\njane@example.com\tJane", []string{"Jane|jane@example.com", "! Max: " + noEmail, "1 cancelled"}},
		"for Excel":           {"sep=;\r\nName;Email\r\nJane;jane@example.com", []string{"Jane|jane@example.com"}},
		"a name alone":        {"Jane Doe", []string{"! Jane Doe: " + noEmail}},
		"no email":            {"jane@", []string{"! jane@: " + invalid}},
		"spaces in an email":  {"jane @example.com", []string{"! jane @example.com: " + invalid}},
		"two and a name":      {"Jane, jane@example.com, joe@example.com", []string{"! Jane, jane@example.com, joe@example.com: There is more than one email address."}},
		"twice":               {"jane@example.com\nJANE@Example.com\n Jane <jane@example.com>", []string{"|jane@example.com", "2 twice"}},
		"a long email":        {strings.Repeat("x", 180) + "@example.com", []string{"! " + strings.Repeat("x", 180) + "@example.com: The email must have 191 characters at most."}},
		"a long name":         {strings.Repeat("x", 192) + " <jane@example.com>", []string{"! " + strings.Repeat("x", 192) + " <jane@example.com>: The name must be one line of 191 characters at most."}},
		"a control character": {"Ja\x01ne <jane@example.com>", []string{"! Ja\x01ne <jane@example.com>: The name must be one line of 191 characters at most."}},
		"an open quote":       {`"Jane <jane@example.com>`, []string{"Jane|jane@example.com"}},
	} {
		if diff := cmp.Diff(test.want, briefly(readGuests(test.text))); diff != "" {
			t.Errorf("%s: want -, got +: %s", name, diff)
		}
	}
}

// A file is read as spreadsheets save it, also by Excel.
func TestFilesOfGuests(t *testing.T) {
	utf16le := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune("Name\tE-Mail\r\nJörg\tjoerg@example.com\r\n")) {
		utf16le = append(utf16le, byte(unit), byte(unit>>8))
	}
	for name, file := range map[string]string{
		"UTF-8":          "Name,Email\nJörg,joerg@example.com\n",
		"Excel's UTF-8":  "\ufeffName;E-Mail\r\nJörg;joerg@example.com\r\n",
		"Windows-1252":   "Name;E-Mail\r\nJ\xf6rg;joerg@example.com\r\n",
		"UTF-16":         string(utf16le),
		"quoted":         "\"Name\",\"Email\"\n\"J\u00f6rg\n\",\"joerg@example.com\"",
		"for Excel":      "sep=;\r\nEmail;Name;Company, Inc.\r\njoerg@example.com;Jörg;a, b\r\n",
		"for Excel too":  "\ufeff\"SEP=|\"\nEmail|Name\njoerg@example.com|Jörg\n",
		"who cancelled":  "Email,Name,Cancelled (UTC)\r\n\"joerg@example.com\",\"Jörg\",\"\"\r\n",
		"without titles": "Jörg,joerg@example.com,4711",
		"ragged":         "Jörg <joerg@example.com>\n\n,,,\n",
	} {
		text, _, err := textOfFile([]byte(file))
		if diff := cmp.Diff([]string{"Jörg|joerg@example.com"}, briefly(readGuests(text))); diff != "" || err != nil {
			t.Errorf("%s: %v, want -, got +: %s", name, err, diff)
		}
	}
	for name, test := range map[string]struct {
		file string
		want error
	}{
		"a workbook": {"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00", errNoCSV},
		"too much":   {strings.Repeat("jane@example.com\n", 20_000), errLongList},
	} {
		if text, _, err := textOfFile([]byte(test.file)); !errors.Is(err, test.want) || text != "" {
			t.Errorf("%s: %q, %v, want %v", name, text, err, test.want)
		}
	}
}

// A guest who could not be added stands in the field as a line that is read as the same guest.
func TestGuestsComeBack(t *testing.T) {
	for _, g := range []listedGuest{{"jane@example.com", ""}, {"jane@example.com", "Jane Doe"}, {"jane@example.com", `Doe, "Jane" <J>; a`}} {
		if diff := cmp.Diff([]string{g.Name + "|" + g.Email}, briefly(readGuests("joe@example.com\n" + g.String()))[1:]); diff != "" {
			t.Errorf("%s: want -, got +: %s", g, diff)
		}
	}
}

// However many are pasted, no more than 500 are added at once, and nobody keeps the edge busy.
func TestLongLists(t *testing.T) {
	for _, separator := range []string{"\n", ","} {
		var text strings.Builder
		for n := range 503 {
			fmt.Fprintf(&text, "guest%d@example.com%s", n, separator)
		}
		read := readGuests(text.String())
		if diff := cmp.Diff([]string{"guest500@example.com", "guest501@example.com", "guest502@example.com"}, read.rest); diff != "" || len(read.guests) != 500 {
			t.Errorf("separated by %q: %d guests, the rest, want -, got +: %s", separator, len(read.guests), diff)
		}
	}
	var text strings.Builder
	text.WriteString("First name,Last name,Company,Email,Manager email\n")
	for n := range 502 {
		fmt.Fprintf(&text, "Jane,Doe%d,ACME,jane%d@example.com,boss@example.com\n", n, n)
	}
	read := readGuests(text.String())
	if diff := cmp.Diff([]string{"Jane Doe500 <jane500@example.com>", "Jane Doe501 <jane501@example.com>"}, read.rest); diff != "" || len(read.guests) != 500 {
		t.Errorf("with titles: %d guests, the rest, want -, got +: %s", len(read.guests), diff)
	}
	if diff := cmp.Diff(briefly(read), briefly(readGuests(strings.Join(strings.SplitAfter(read.lines(), "\n")[:500], "")))); diff != "" {
		t.Errorf("read again, want -, got +: %s", diff)
	}
	for name, input := range map[string]func(size int) string{
		"names": func(size int) string {
			return strings.Repeat("nom,", size/12) + "email\n" + lineartest.Repeat("@,", size/2)
		},
		"a long title": func(size int) string {
			return "email,x" + strings.Repeat("X", size/2) + "\n" + strings.Repeat("a,b\n", size/8)
		},
	} {
		t.Run(name, func(t *testing.T) {
			lineartest.Check(t, maxPaste, input, func(text string) { readGuests(text) })
		})
	}
	for _, part := range []string{`"Jane" <j@x>,`, "a b@c.de ", "<", "\"a\"\"\t", "jane@example.com,", "\n", "a,", `"`} {
		lineartest.Check(t, maxPaste, func(size int) string { return lineartest.Repeat(part, size) }, func(text string) { readGuests(text) })
	}
}
