package desk

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/lib/fold"
	"github.com/lychgate/caddy-lychgate/internal/lib/spreadsheet"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file reads lists of guests that somebody pastes, or has in a file (docs/registration.md#several-guests).

const (
	// maxGuestsAtOnce bounds the guests who are added in one go.
	maxGuestsAtOnce = 500

	// maxPaste bounds a list, in bytes: 500 bytes a guest.
	maxPaste = 256 << 10

	// maxWrongLines bounds the lines that are shown with what is wrong with them.
	maxWrongLines = 20
)

// listedGuest is somebody on a list.
type listedGuest struct{ Email, Name string }

// String is a line that readGuests reads as the guest.
func (g listedGuest) String() string {
	switch {
	case g.Name == "":
		return g.Email
	case g.Email == "":
		return g.Name
	case strings.ContainsAny(g.Name, ",;<>\""):
		return fmt.Sprintf(`"%s" <%s>`, strings.ReplaceAll(g.Name, `"`, `""`), g.Email)
	}
	return g.Name + " <" + g.Email + ">"
}

// wrongLine is a line that says nobody, or a guest who was not added.
type wrongLine struct{ Text, Why string }

// guestsRead is what lists say.
type guestsRead struct {
	guests []listedGuest
	wrong  []wrongLine
	rest   []string // guests after maxGuestsAtOnce, as lines
	twice  int      // guests who stand there more than once
	gone   int      // rows of guests who cancelled
	waits  int      // rows of those who wait for a place
	isOn   map[string]bool
}

// lines are those that are read as the same list without the titles of columns.
func (read *guestsRead) lines() string {
	var lines []string
	for _, g := range read.guests {
		lines = append(lines, g.String())
	}
	return strings.Join(append(lines, read.stay()...), "\n")
}

// stay are the lines of those who cannot be added now.
func (read *guestsRead) stay() (lines []string) {
	for _, line := range read.wrong {
		lines = append(lines, line.Text)
	}
	return append(lines, read.rest...)
}

// readGuests reads lists: a guest on each line, or the columns of a spreadsheet, with or without the line that names them.
func readGuests(lists ...string) *guestsRead {
	read := &guestsRead{isOn: make(map[string]bool)}
	for _, text := range lists {
		var columns []column
		isFirst, hasTabs := true, false
		for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
			cells := cellsOf(line, hasTabs)
			switch {
			case len(cells) == 0, isFirst && strings.EqualFold(cells[0], "sep="): // by which a file tells Excel its separator
				continue
			case isFirst && isHeader(cells):
				columns, hasTabs = kindsOf(cells), strings.Contains(line, "\t")
			default:
				read.line(strings.TrimSpace(line), cells, columns)
			}
			isFirst = false
		}
	}
	return read
}

func (read *guestsRead) line(line string, cells []string, columns []column) {
	var found []listedGuest
	var err error
	switch {
	case columns == nil:
		found, err = guestsOn(cells)
	case hasCell(cells, columns, goneColumn):
		read.gone++
	case hasCell(cells, columns, waitingColumn):
		read.waits++
	default:
		var guest listedGuest
		guest, err = guestIn(cells, columns)
		found = []listedGuest{guest}
		line = cmp.Or(guest.String(), line) // which stands without the titles later
	}
	for _, g := range found {
		err = cmp.Or(err, registration.Addition{Email: g.Email, Name: g.Name}.Check())
	}
	if err != nil {
		read.wrong = append(read.wrong, wrongLine{line, api.FailureOf(err).Message})
		return
	}
	for _, g := range found {
		switch key := emailaddr.Key(g.Email); {
		case read.isOn[key]:
			read.twice++
		case len(read.guests) >= maxGuestsAtOnce:
			read.rest = append(read.rest, g.String())
		default:
			read.isOn[key], read.guests = true, append(read.guests, g)
		}
	}
}

// cellsOf splits a line at tabs if it has some or the list has, otherwise at commas and semicolons. A cell may begin with
// quotes, which hold what would separate.
func cellsOf(line string, hasTabs bool) (cells []string) {
	whole := strings.TrimRightFunc(strings.ToValidUTF8(line, "\uFFFD"), unicode.IsSpace)
	line = strings.TrimSpace(whole)
	separators := ",;"
	if hasTabs || strings.Contains(line, "\t") {
		separators = "\t"
		line = strings.TrimLeft(whole, " ") // the first cells may be empty
	}
	for line != "" {
		var cell strings.Builder
		if quoted, ok := strings.CutPrefix(line, `"`); ok {
			for ok {
				var before string
				before, quoted, _ = strings.Cut(quoted, `"`)
				cell.WriteString(before)
				if quoted, ok = strings.CutPrefix(quoted, `"`); ok { // two are one
					cell.WriteByte('"')
				}
			}
			line = quoted
		}
		end := strings.IndexAny(line, separators)
		if end < 0 {
			end = len(line)
		}
		cell.WriteString(line[:end])
		line = strings.TrimLeft(line[min(end+1, len(line)):], " ")
		cells = append(cells, strings.TrimSpace(spreadsheet.Unescape(cell.String())))
	}
	if !slices.ContainsFunc(cells, func(cell string) bool { return cell != "" }) {
		return nil
	}
	return cells
}

// isHeader reports whether the first line names the columns.
func isHeader(cells []string) bool {
	return slices.ContainsFunc(cells, isMailColumn) && !slices.ContainsFunc(cells, func(cell string) bool { return strings.Contains(cell, "@") })
}

// column is what a column of a spreadsheet has.
type column int

const (
	otherColumn column = iota
	mailColumn
	nameColumn
	goneColumn
	waitingColumn
)

func kindsOf(titles []string) []column {
	columns := make([]column, len(titles))
	for i, title := range titles {
		switch {
		case isMailColumn(title):
			columns[i] = mailColumn
		case isNameColumn(title):
			columns[i] = nameColumn
		case fold.Text(title) == "cancelled (utc)":
			columns[i] = goneColumn
		case fold.Text(title) == "waiting since (utc)":
			columns[i] = waitingColumn
		}
	}
	return columns
}

func isMailColumn(title string) bool { return strings.Contains(fold.Text(title), "mail") }

// nameColumns are titles of columns with names or parts of them, folded.
var nameColumns = []string{
	"name", "full name", "first name", "last name", "given name", "family name", "surname", "firstname", "lastname",
	"vorname", "nachname", "nom", "prenom", "nombre", "apellidos", "voornaam", "achternaam", "fornavn", "etternavn", "fornamn", "efternamn",
}

func isNameColumn(title string) bool {
	return slices.Contains(nameColumns, strings.ReplaceAll(fold.Text(title), "_", " "))
}

// hasCell reports whether a row of a guest list's download has something in a column, such as when somebody cancelled.
func hasCell(cells []string, columns []column, of column) bool {
	for i, cell := range cells[:min(len(cells), len(columns))] {
		if columns[i] == of && cell != "" {
			return true
		}
	}
	return false
}

var (
	errNoGuest    = api.Invalid("There is no email address.")
	errManyEmails = api.Invalid("There is more than one email address.")
)

// guestsOn reads a line: one guest, or email addresses alone, as mail programs separate them. Errors: errNoGuest,
// errManyEmails.
func guestsOn(cells []string) ([]listedGuest, error) {
	isGuest := func(cell string) bool { _, ok := guestOf(cell); return ok }
	hasCells := slices.ContainsFunc(cells, isGuest)
	if !hasCells { // such as Jane Doe jane@example.com
		cells = strings.Fields(strings.Join(cells, " "))
	}
	var found []listedGuest
	var before, after []string // the email
	filled := 0
	for _, cell := range cells {
		if cell != "" {
			filled++
		}
		guest, isGuest := guestOf(cell)
		switch {
		case isGuest:
			found = append(found, guest)
		case !strings.ContainsFunc(cell, unicode.IsLetter): // such as a telephone number
		case len(found) == 0:
			before = append(before, cell)
		default:
			after = append(after, cell)
		}
	}
	switch {
	case len(found) == 0:
		return nil, errNoGuest
	case len(found) > 1 && len(found) < filled:
		return nil, errManyEmails
	case len(found) == 1:
		found[0].Name = strings.TrimSpace(strings.Join(append(before, found[0].Name), " "))
		if hasCells {
			after = after[:min(len(after), 1)]
		}
		found[0].Name = cmp.Or(found[0].Name, strings.Join(after, " "))
	}
	return found, nil
}

// maxNameBytes is more than a name may have, in bytes.
const maxNameBytes = 4 * maxTitle

// guestIn reads a line whose columns have titles. With an error the guest has what was found. Errors: errNoGuest.
func guestIn(cells []string, columns []column) (guest listedGuest, err error) {
	name, err := "", errNoGuest
	for i, cell := range cells[:min(len(cells), len(columns))] {
		switch {
		case columns[i] == mailColumn && err != nil:
			if found, ok := guestOf(cell); ok {
				guest, err = found, nil
			} else if guest.Email == "" {
				guest.Email = cell
			}
		case columns[i] == nameColumn && len(name) <= maxNameBytes && !strings.Contains(name, cell): // the first name may stand in the full one
			name = strings.TrimSpace(name + " " + cell)
		}
	}
	guest.Name = cmp.Or(name, guest.Name)
	return guest, err
}

// guestOf reads jane@example.com, or Jane Doe <jane@example.com>.
func guestOf(cell string) (guest listedGuest, ok bool) {
	guest.Email = cell
	if before, ok := strings.CutSuffix(cell, ">"); ok {
		if start := strings.LastIndexByte(before, '<'); start >= 0 {
			guest = listedGuest{Email: before[start+1:], Name: strings.TrimSpace(before[:start])}
		}
	}
	guest.Email = strings.TrimPrefix(strings.TrimSpace(guest.Email), "mailto:")
	return guest, strings.Contains(guest.Email, "@") && !strings.ContainsFunc(guest.Email, unicode.IsSpace)
}

// fileErrors of lists in files.
var (
	errLongList = api.Invalid(fmt.Sprintf("The list has more than %d KB. Add it in parts.", maxPaste>>10))
	errNoCSV    = api.Invalid("The file cannot be read. Save it as CSV, or copy its cells into the field.")
)

// textOfFile reads a file that a spreadsheet has saved, as lines whose cells are separated by tabs. The encoding of what is
// no UTF-8 and no UTF-16 is a guess, which it returns. Errors: errLongList, errNoCSV.
func textOfFile(file []byte) (text, guess string, err error) {
	text, err = textOfCSV(file, "")
	if encoding, ok := errors.AsType[*spreadsheet.EncodingError](err); ok {
		guess = encoding.Encoding
		text, err = textOfCSV(file, guess)
	}
	switch {
	case err != nil, strings.Contains(text, "\x00"): // a workbook
		return "", "", errNoCSV
	case len(text) > maxPaste:
		return "", "", errLongList
	}
	return text, guess, nil
}

func textOfCSV(file []byte, encoding string) (string, error) {
	rows, err := spreadsheet.NewReader(bytes.NewReader(file), encoding)
	if err != nil {
		return "", err
	}
	rows.AllowRagged()
	var text strings.Builder
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		for i, cell := range row {
			if i > 0 {
				text.WriteByte('\t')
			}
			text.WriteString(strings.Join(strings.Fields(cell), " "))
		}
		text.WriteByte('\n')
	}
}

// shownLines clips lines for a page.
func shownLines(lines []wrongLine) (shown []wrongLine, more int) {
	for _, line := range lines[:min(len(lines), maxWrongLines)] {
		shown = append(shown, wrongLine{clip.Text(line.Text, maxLabel), clip.Text(line.Why, maxMessage)})
	}
	return shown, len(lines) - len(shown)
}
