package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	membersapi "github.com/lychgate/caddy-lychgate/handlers/members"
	"github.com/lychgate/caddy-lychgate/internal/lib/spreadsheet"
	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/members/push"
)

// This file is the CSV of members: `members export` writes it, and `members push` reads
// it.

// memberColumn is a column of the CSV.
type memberColumn struct {
	name  string
	value func(membersapi.MemberRecord) string

	// set sets the field of a cell. It is nil for a column that nobody can change.
	set func(*members.Fields, string) error
}

// memberColumns are in the order of an export.
var memberColumns = []memberColumn{
	{"guid", func(r membersapi.MemberRecord) string { return r.GUID }, nil},
	{"email", func(r membersapi.MemberRecord) string { return r.Email }, func(f *members.Fields, cell string) error {
		if cell = strings.TrimSpace(cell); cell != "" {
			f.Email = &cell
		}
		return nil
	}},
	{"name", func(r membersapi.MemberRecord) string { return r.Name }, func(f *members.Fields, cell string) error {
		f.Name = &cell
		return nil
	}},
	{"is_subscribed", func(r membersapi.MemberRecord) string { return strconv.FormatBool(r.Subscribed) }, setSubscribed},
	{"note", func(r membersapi.MemberRecord) string { return r.Note }, func(f *members.Fields, cell string) error {
		f.Note = &cell
		return nil
	}},
	{"labels", func(r membersapi.MemberRecord) string { return strings.Join(r.Labels, ",") }, func(f *members.Fields, cell string) error {
		f.Labels = new(labelsOf(cell))
		return nil
	}},
	{"tier_id", func(r membersapi.MemberRecord) string { return orEmpty(r.TierID) }, func(f *members.Fields, cell string) error {
		f.TierID = new(*string)
		if cell != "" {
			*f.TierID = &cell
		}
		return nil
	}},
	{"member_id", func(r membersapi.MemberRecord) string { return orEmpty(r.MemberID) }, func(f *members.Fields, cell string) error {
		f.MemberID = &cell
		return nil
	}},
	{"status", func(r membersapi.MemberRecord) string { return r.Status }, nil},
	{"created_at", func(r membersapi.MemberRecord) string { return r.CreatedAt }, nil},
	{"updated_at", func(r membersapi.MemberRecord) string { return r.UpdatedAt }, nil},
}

// setSubscribed sets is_subscribed, which spreadsheets write in capitals. An empty cell
// leaves it as it is.
func setSubscribed(f *members.Fields, cell string) error {
	switch strings.ToLower(strings.TrimSpace(cell)) {
	case "":
	case "true":
		f.Subscribed = new(true)
	case "false":
		f.Subscribed = new(false)
	default:
		return &members.InvalidError{Message: "The is_subscribed must be true or false."}
	}
	return nil
}

func labelsOf(cell string) []string {
	labels := []string{}
	for label := range strings.SplitSeq(cell, ",") {
		if label = strings.TrimSpace(label); label != "" {
			labels = append(labels, label)
		}
	}
	return labels
}

func columnNames(columns []memberColumn) (names []string) {
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// csvFormat writes CSV by RFC 4180, with every value in quotes.
func csvFormat(out *bufio.Writer) func(membersapi.MemberRecord) error {
	_, _ = out.WriteString(strings.Join(columnNames(memberColumns), ",") + "\r\n") // an error stays with out
	return func(r membersapi.MemberRecord) error {
		values := make([]string, 0, len(memberColumns))
		for _, c := range memberColumns {
			values = append(values, spreadsheet.Cell(c.value(r)))
		}
		_, err := out.WriteString(strings.Join(values, ",") + "\r\n")
		return err
	}
}

// maxRow bounds a row of a file that is read, in bytes. A row with all fields as long as
// they can be has 100 KB.
const maxRow = 1 << 20

// membersCSV reads members from a CSV file.
type membersCSV struct {
	reader *spreadsheet.Reader
	budget *rowBudget

	columns []memberColumn // of the file; one without a name is not read
	ignored []string       // columns that nobody can change
	unknown []string

	line       int // of the row that was read last
	identifier int // its column
	email      int // likewise, -1 for none
}

// newMembersCSV reads the first line of a file, which names the columns. The encoding is that of spreadsheet.NewReader.
func newMembersCSV(from io.Reader, mode members.Mode, encoding string) (_ *membersCSV, err error) {
	f := &membersCSV{budget: &rowBudget{from: from, left: maxRow}, line: 1}
	if f.reader, err = spreadsheet.NewReader(f.budget, encoding); err != nil {
		return nil, f.explain(err)
	}
	header, err := f.reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty: its first line names the columns, such as email,name,labels")
	}
	if err != nil {
		return nil, f.explain(err)
	}
	for _, name := range header {
		if err := f.addColumn(strings.TrimSpace(name)); err != nil {
			return nil, err
		}
	}
	identifier := "email"
	if f.email = f.indexOf(identifier); mode == members.CustomIDMode {
		identifier = "member_id"
	} else if at := f.indexOf("member_id"); at >= 0 { // which is another integration's
		f.columns[at] = memberColumn{}
		f.ignored = append(f.ignored, "member_id")
	}
	if f.identifier = f.indexOf(identifier); f.identifier < 0 {
		return nil, fmt.Errorf("line 1: there is no column %s, by which the integration knows members", identifier)
	}
	return f, nil
}

// Of the export of Ghost's own Admin: the column that has another name there, and those that nobody can change here.
const subscribedInGhost = "subscribed_to_emails"

var onlyInGhost = []string{"id", "complimentary_plan", "stripe_customer_id", "deleted_at", "tiers", "gift_id"}

// consent begins what a name has that may say who gets newsletters, in lower case and without what is between its words.
var consent = []string{"subscri", "newsletter", "optin", "optout", "optedin", "optedout", "consent", "emaildisabled", "marketing"}

func saysConsent(name string) bool {
	name = strings.Map(func(c rune) rune {
		if !unicode.IsLetter(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
	return slices.ContainsFunc(consent, func(part string) bool { return strings.Contains(name, part) })
}

func (f *membersCSV) addColumn(name string) error {
	if strings.EqualFold(name, subscribedInGhost) {
		name = "is_subscribed"
	}
	at := slices.IndexFunc(memberColumns, func(c memberColumn) bool { return strings.EqualFold(c.name, name) })
	if at >= 0 {
		name = memberColumns[at].name
	}
	switch {
	case at < 0 && slices.Contains(onlyInGhost, strings.ToLower(name)):
		f.ignored, f.columns = append(f.ignored, name), append(f.columns, memberColumn{})
		return nil
	case at < 0 && saysConsent(name):
		return fmt.Errorf("line 1: the column %q may say who gets newsletters, so it is not left out: "+
			"name it is_subscribed, with true or false in its cells, or remove it", name)
	case at < 0:
		f.unknown, f.columns = append(f.unknown, name), append(f.columns, memberColumn{})
		return nil
	case f.indexOf(name) >= 0 || slices.Contains(f.ignored, name):
		return fmt.Errorf("line 1: the column %s is given twice", name)
	}
	column := memberColumns[at]
	if column.set == nil {
		f.ignored, column = append(f.ignored, name), memberColumn{}
	}
	f.columns = append(f.columns, column)
	return nil
}

func (f *membersCSV) indexOf(name string) int {
	return slices.IndexFunc(f.columns, func(c memberColumn) bool { return c.name == name })
}

// rows reads the rows. Those without any value are left out.
func (f *membersCSV) rows() iter.Seq2[push.Row, error] {
	return func(yield func(push.Row, error) bool) {
		for {
			f.budget.left = maxRow
			record, err := f.reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(push.Row{}, f.explain(err))
				return
			}
			if !slices.ContainsFunc(record, func(cell string) bool { return cell != "" }) {
				continue
			}
			if !yield(f.rowOf(slices.Clone(record)), nil) {
				return
			}
		}
	}
}

func (f *membersCSV) rowOf(cells []string) push.Row {
	f.line = f.reader.Line()
	row := push.Row{Line: f.line, Identifier: spreadsheet.Unescape(cells[f.identifier])}
	if f.email >= 0 {
		row.Email = strings.TrimSpace(spreadsheet.Unescape(cells[f.email]))
	}
	if f.identifier == f.email {
		row.Identifier = row.Email
	}
	row.Fields = func(m *members.Member) (members.Fields, error) { return f.fieldsOf(cells, m) }
	return row
}

// fieldsOf reads the fields of a row. Cells that an export of the member would have are
// left out, also where one could be read in two ways, such as a label with a comma.
func (f *membersCSV) fieldsOf(cells []string, m *members.Member) (fields members.Fields, err error) {
	for i, column := range f.columns {
		if column.set == nil {
			continue
		}
		if m != nil && cells[i] == asRead(spreadsheet.Escape(column.value(membersapi.NewMemberRecord(*m)))) {
			continue
		}
		if strings.ContainsRune(cells[i], utf8.RuneError) {
			invalid := &members.InvalidError{Message: "The " + column.name + " has U+FFFD, where a letter was lost when the file was converted."}
			err = errors.Join(err, invalid)
			continue
		}
		err = errors.Join(err, column.set(&fields, spreadsheet.Unescape(cells[i])))
	}
	return fields, err
}

// asRead turns a cell into what encoding/csv reads of it.
func asRead(cell string) string { return strings.ReplaceAll(cell, "\r\n", "\n") }

// explain says where a file cannot be read.
func (f *membersCSV) explain(err error) error {
	if errors.Is(err, errLongRow) {
		return fmt.Errorf("the row at line %d, or the one after it, has more than %d bytes: is a quote missing?", f.line, maxRow)
	}
	if other, ok := errors.AsType[*spreadsheet.EncodingError](err); ok {
		return fmt.Errorf("%w, or add --encoding %s here", err, other.Encoding)
	}
	return err
}

var errLongRow = errors.New("the row is too long")

// rowBudget reads, and fails once more was read of a row than it may have.
type rowBudget struct {
	from io.Reader
	left int
}

func (b *rowBudget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongRow
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
