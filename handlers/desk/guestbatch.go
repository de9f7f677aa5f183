package desk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/emailaddr"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file adds several guests at once (docs/registration.md#several-guests).

// severalTimeout bounds one form that adds several guests, so that its answer arrives before a proxy gives up. The platform
// is asked for one guest after the other, and the page lists those who were not reached.
const severalTimeout = 30 * time.Second

// guestBatch are guests who are added by one press.
type guestBatch struct {
	ID, Title, Button string
	Texts             []string
	Wrong             []wrongLine // cut
	More              int         // that are not shown
	Guests            []listedGuest
	Again             []listedGuest // who are registered already
	Lines             string        // that stay in the field
	IsOver            bool
}

// Field is what the form sends of the guests.
func (b *guestBatch) Field() string {
	var text strings.Builder
	for _, g := range b.Guests {
		text.WriteString(g.Email + "\t" + g.Name + "\n")
	}
	return text.String()
}

// readGuestForm shows what the lists in a form say, and adds nobody.
func readGuestForm(ctx context.Context, v *view) (any, error) {
	page, err := v.guestListOf(ctx)
	if err != nil {
		return nil, err
	}
	page.Lines = v.request.PostForm.Get("lines")
	inFile, guess, err := v.fileOf("file")
	if err == nil && len(page.Lines)+len(inFile) > maxPaste {
		page.Lines, err = "", errLongList
	}
	if err != nil {
		page.Notice = &notice{Text: api.FailureOf(err).Message, IsProblem: true}
		return page, nil
	}
	read := readGuests(page.Lines, inFile)
	if inFile != "" { // a field for a file is empty on the next page
		page.Lines = read.lines()
	}
	page.Batch, err = v.batchOf(ctx, page, read, guess)
	return page, err
}

// batchOf asks about the guests on a list, and says who is left out and why. guess is the encoding of a file, "" if that is known.
func (v *view) batchOf(ctx context.Context, page *guestPage, read *guestsRead, guess string) (*guestBatch, error) {
	added, again, err := v.sortOut(ctx, page.ID, read.guests)
	if err != nil {
		return nil, err
	}
	n := len(added)
	batch := &guestBatch{ID: page.ID, Guests: added, Again: again, Title: "Add " + guestsInWords(n) + "?", Button: "Add " + guestsInWords(n)}
	say := func(text string, of ...any) { batch.Texts = append(batch.Texts, fmt.Sprintf(text, of...)) }
	switch {
	case n > 0:
	case len(again)+read.gone+read.waits == 0:
		batch.Title = "Nobody can be added"
		say("Write the email address of a guest on each line.")
	default:
		batch.Title = "Nobody is added"
	}
	if guess != "" {
		say("The file is not UTF-8, and was read as %s. Look at the names with accents.", guess)
	}
	if page.Tally.Most > 0 && n > 0 {
		say("%s", placesLeft(page.Tally, n))
	}
	if page.IsTold && n > 0 {
		say("%s", plural(n, "The guest gets", "Each gets")+" a confirmation by mail.")
	}
	if read.gone > 0 {
		say("%s cancelled, as the list says, and %s left out.", guestsInWords(read.gone), plural(read.gone, "is", "are"))
	}
	if read.waits > 0 {
		say("%s for a place, as the list says, and %s left out.", guestsInWords(read.waits)+plural(read.waits, " waits", " wait"), plural(read.waits, "is", "are"))
	}
	if read.twice > 0 {
		say("%d %s a guest who is on the list already.", read.twice, plural(read.twice, "line repeats", "lines repeat"))
	}
	if n := len(read.wrong); n > 0 {
		say("%d %s out, and %s in the field:", n, plural(n, "line is left", "lines are left"), plural(n, "stays", "stay"))
	}
	if n := len(read.rest); n > 0 {
		say("%d guests are added at once at most. %d more %s in the field for the next time.", maxGuestsAtOnce, n, plural(n, "stays", "stay"))
	}
	batch.Wrong, batch.More = shownLines(read.wrong)
	batch.Lines = strings.Join(read.stay(), "\n")
	return batch, nil
}

// sortOut tells apart who would be added and who is registered already, by the email that they had when they registered.
func (v *view) sortOut(ctx context.Context, event string, list []listedGuest) (added, again []listedGuest, err error) {
	guests, err := v.guests()
	if err != nil {
		return nil, nil, err
	}
	isThere := make(map[string]bool)
	if err := guests.Registered(ctx, v.site.Name, event, func(email string) { isThere[emailaddr.Key(email)] = true }); err != nil {
		return nil, nil, v.explain(err)
	}
	for _, g := range list {
		if isThere[emailaddr.Key(g.Email)] {
			again = append(again, g)
		} else {
			added = append(added, g)
		}
	}
	return added, again, nil
}

// placesLeft says how many places an event with a limit has for n more.
func placesLeft(of registration.Tally, n int) string {
	left := max(0, of.Most-of.Registered-of.Offered)
	said := fmt.Sprintf("There %s left.", plural(left, "is 1 place", fmt.Sprintf("are %d places", left)))
	if left == 0 {
		said = "There is no place left."
	}
	if n > left {
		said += " The page asks once more before it adds anybody over the limit."
	}
	return said
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func guestsInWords(n int) string { return fmt.Sprintf("%d %s", n, plural(n, "guest", "guests")) }

// fileOf reads a list from a field of a form as textOfFile does, "" if no file was chosen. Errors: errNoCSV, errLongList.
func (v *view) fileOf(field string) (text, guess string, err error) {
	file, header, err := v.request.FormFile(field)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return "", "", nil
	}
	if err != nil {
		return "", "", errNoCSV
	}
	defer func() { _ = file.Close() }() // nothing was written
	if header.Size > 2*maxPaste {       // in UTF-16 a letter has two bytes
		return "", "", errLongList
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return "", "", errNoCSV
	}
	return textOfFile(content)
}

// guestListOf reads the list that a form is on.
func (v *view) guestListOf(ctx context.Context) (*guestPage, error) {
	form := v.request.PostForm
	return v.guestList(ctx, form)
}

// severalAdded is what became of several guests.
type severalAdded struct {
	added, again int
	failed       []wrongLine
	left         []listedGuest // who were not reached
	stopped      error         // why, nil for want of time
}

// addSeveral adds the guests who were shown, as many as there is time for.
func addSeveral(ctx context.Context, v *view) (any, error) {
	form := v.request.PostForm
	if len(form.Get("guests")) > 2*maxPaste || len(form.Get("lines")) > 2*maxPaste {
		return nil, errForm
	}
	var list []listedGuest
	for line := range strings.Lines(form.Get("guests")) {
		if email, name, _ := strings.Cut(strings.TrimSpace(line), "\t"); email != "" {
			list = append(list, listedGuest{email, name})
		}
	}
	if len(list) > maxGuestsAtOnce {
		return nil, errForm
	}
	did, err := v.addEach(ctx, form.Get("event"), list, form.Get("over") != "")
	if err != nil {
		return nil, v.explain(err)
	}
	page, err := v.guestListOf(ctx)
	if err != nil {
		return nil, err
	}
	stay := make([]string, 0, len(did.failed)+1)
	for _, line := range did.failed {
		stay = append(stay, line.Text)
	}
	if before := form.Get("lines"); before != "" {
		stay = append(stay, before)
	}
	page.Lines = strings.Join(stay, "\n")
	said := []string{"Nobody was added."}
	if did.added > 0 {
		said = []string{guestsInWords(did.added) + plural(did.added, " was", " were") + " added."}
	}
	if did.again > 0 {
		said = append(said, fmt.Sprintf("%d %s registered already.", did.again, plural(did.again, "is", "are")))
	}
	if len(did.failed) > 0 {
		said = append(said, fmt.Sprintf("%d could not be added.", len(did.failed)))
	}
	_, isFull := errors.AsType[*registration.FullError](did.stopped)
	page.Notice = &notice{Text: strings.Join(said, " "), IsProblem: len(did.failed) > 0 || did.stopped != nil && !isFull}
	if len(did.failed)+len(did.left) == 0 {
		return page, nil
	}
	page.Batch = v.batchOfLeft(page, did)
	for _, g := range did.left { // for those who leave the question alone
		page.Lines += "\n" + g.String()
	}
	page.Lines = strings.TrimPrefix(page.Lines, "\n")
	return page, nil
}

// batchOfLeft are those who were not reached, and why.
func (v *view) batchOfLeft(page *guestPage, did severalAdded) *guestBatch {
	n := len(did.left)
	batch := &guestBatch{ID: page.ID, Guests: did.left, Lines: page.Lines, Title: guestsInWords(n) + plural(n, " is", " are") + " left", Button: "Go on with " + guestsInWords(n)}
	full, isFull := errors.AsType[*registration.FullError](did.stopped)
	switch {
	case n == 0:
		batch.Title = guestsInWords(len(did.failed)) + " could not be added"
	case isFull:
		batch.IsOver = true
		batch.Title = "Add " + guestsInWords(n) + " over the limit?"
		batch.Button = "Add " + guestsInWords(n) + " over the limit"
		batch.Texts = append(batch.Texts, full.Describe().Message+" The places of others stay as they are.")
	case did.stopped != nil:
		failure := api.FailureOf(did.stopped)
		if failure.IsLogged || failure.Outcome == api.Failed {
			v.desk.log(v, "guest-list", did.stopped)
		}
		batch.Texts = append(batch.Texts, clip.Text(failure.Message, maxMessage))
	default:
		batch.Texts = append(batch.Texts, v.site.Kind.Title+" takes its time, so they were not reached yet.")
	}
	if len(did.failed) > 0 {
		batch.Texts = append(batch.Texts, "Not added, and left in the field:")
	}
	batch.Wrong, batch.More = shownLines(did.failed)
	return batch
}

// addEach adds guests one after the other, until the time is up or something is in the way of all. Errors:
// events.ErrNotFound, context.Canceled, those of the store.
func (v *view) addEach(ctx context.Context, event string, list []listedGuest, isOver bool) (did severalAdded, err error) {
	ctx, cancel := context.WithTimeout(ctx, severalTimeout)
	defer cancel()
	for i, g := range list {
		if end, _ := ctx.Deadline(); time.Until(end) < timeout {
			did.left = list[i:]
			return did, nil
		}
		isNew, err := v.addOne(ctx, event, registration.Addition{Email: g.Email, Name: g.Name, By: v.member.Name, OverLimit: isOver})
		failure := api.FailureOf(err)
		switch {
		case err == nil && isNew:
			did.added++
		case err == nil:
			did.again++
		case failure.Status == http.StatusUnprocessableEntity: // the guest is in the way of nobody else
			did.failed = append(did.failed, wrongLine{g.String(), failure.Message})
		case errors.Is(err, events.ErrNotFound), errors.Is(err, context.Canceled), failure.IsUnforeseen:
			return did, err
		default:
			did.left, did.stopped = list[i:], err
			return did, nil
		}
	}
	return did, nil
}

func (v *view) addOne(ctx context.Context, event string, of registration.Addition) (isNew bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, isNew, err = v.site.Events.AddRegistrant(ctx, event, of)
	return isNew, err
}
