package events

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/spreadsheet"
	"github.com/lychgate/caddy-lychgate/internal/registration"
)

// This file is the list of an event's registrants for the staff (docs/registration.md#for-programs).

// These are the responses.
type (
	// registrantsResponse is a page of those who have registered for an event.
	registrantsResponse struct {
		Registrations []registrantResponse `json:"registrations"`
		Registered    int                  `json:"registered"`
		Cancelled     int                  `json:"cancelled"`
		CheckedIn     int                  `json:"checked_in"`
		MaxAttendees  *int                 `json:"max_attendees"` // null for any number
		Next          *string              `json:"next"`          // the after, or changed_after, of the next page
		Changes       string               `json:"changes"`       // the changed_after of what changes from now on
	}

	registrantResponse struct {
		Member       string  `json:"member"`
		Email        string  `json:"email"`
		Name         string  `json:"name"`
		RegisteredAt string  `json:"registered_at"`
		AddedBy      *string `json:"added_by"` // null for the member
		CancelledAt  *string `json:"cancelled_at"`
		CancelledBy  *string `json:"cancelled_by"` // null for the member
		CheckedInAt  *string `json:"checked_in_at"`

		MailRefused *refusedResponse `json:"mail_refused"` // null unless the last mail was refused
	}

	refusedResponse struct {
		Kind   string `json:"kind"`
		At     string `json:"at"`
		Reason string `json:"reason"`
	}

	// additionBody is who is added, a walk-in without an email. With a member, a registration that
	// was cancelled is taken up again.
	additionBody struct {
		Email     string `json:"email"`
		Name      string `json:"name"`
		Member    string `json:"member"`
		OverLimit bool   `json:"over_limit"`
	}
)

// registrantsPerPage is how many registrants a page has, unless the request says otherwise.
const registrantsPerPage = 100

var (
	errLimit      = api.Invalid("The limit is a number from 1 to " + strconv.Itoa(registration.MaxRegistrants) + ".")
	errNoAddition = api.Invalid(`Send JSON such as {"email": "jane@example.com", "name": "Jane"}, {"name": "Jane"} for somebody without an email, or {"member": "…"} with the UUID of somebody who has cancelled.`)
	errCheckTime  = api.Invalid("The at is a time such as 2031-05-01T17:00:00Z.")
)

// registrants answers with a page of those who have registered, or of those who have changed.
func (a *eventRequest) registrants(ctx context.Context) (api.Response, error) {
	guests, err := a.site.Guests()
	if err != nil {
		return api.Response{}, err
	}
	tag, err := guests.ListTag(ctx, a.site.Name, a.id) // first: a later one could be of more than is listed
	if err != nil {
		return api.Response{}, err
	}
	for of := range strings.SplitSeq(a.Header.Get("If-None-Match"), ",") {
		if api.TagOf(of) == tag {
			a.Response.Header().Set("Etag", api.ETag(tag))
			return api.Response{Status: http.StatusNotModified}, nil
		}
	}
	query := a.URL.Query()
	most, err := a.limit()
	if err != nil {
		return api.Response{}, err
	}
	var page registration.RegistrantPage
	if query.Has("changed_after") {
		page, err = guests.Changes(ctx, a.site.Name, a.id, query.Get("changed_after"), most)
	} else {
		page, err = guests.Registrants(ctx, a.site.Name, a.id, registration.RegistrantQuery{
			Text: a.search(), After: query.Get("after"), Most: most,
		})
	}
	if err != nil {
		return api.Response{}, err
	}
	a.Response.Header().Set("Etag", api.ETag(tag))
	return api.Response{Body: a.registrantsOf(page)}, nil
}

func (a *eventRequest) registrantsOf(page registration.RegistrantPage) registrantsResponse {
	response := registrantsResponse{
		Registrations: []registrantResponse{}, Registered: page.Tally.Registered, Cancelled: page.Tally.Cancelled, CheckedIn: page.Tally.CheckedIn,
		Next: api.TextOrNull(page.Next), Changes: page.Changes,
	}
	if page.Tally.Most > 0 {
		response.MaxAttendees = &page.Tally.Most
	}
	for _, r := range page.Registrants {
		response.Registrations = append(response.Registrations, a.registrantOf(r))
	}
	return response
}

func (a *eventRequest) registrantOf(r registration.Registrant) registrantResponse {
	shown := registrantResponse{
		Member: r.Member, Email: r.Email, Name: r.Name, RegisteredAt: api.Time(r.RegisteredAt), AddedBy: api.TextOrNull(r.AddedBy),
		CancelledAt: api.TimeOrNull(r.CancelledAt), CancelledBy: api.TextOrNull(r.CancelledBy), CheckedInAt: api.TimeOrNull(r.CheckedInAt),
	}
	if r.Refused != nil && a.site.SendsMail {
		shown.MailRefused = &refusedResponse{r.Refused.Kind, api.Time(r.Refused.At), r.Refused.Text}
	}
	return shown
}

// addRegistrant registers somebody, or takes up a registration again.
func (a *eventRequest) addRegistrant(ctx context.Context) (api.Response, error) {
	var body additionBody
	err := a.read(&body, errNoAddition)
	if err == nil && (body.Email+body.Name+body.Member == "" || body.Email != "" && body.Member != "") {
		err = errNoAddition
	}
	if err != nil {
		return api.Response{}, err
	}
	key, err := a.idempotencyKey()
	if err != nil {
		return api.Response{}, err
	}
	var of registration.Registrant
	var isNew bool
	if body.Member == "" {
		of, isNew, err = a.site.AddRegistrant(ctx, a.id, registration.Addition{Email: body.Email, Name: body.Name, By: a.Member.Name, OverLimit: body.OverLimit, Key: key})
	} else {
		of, isNew, err = a.restore(ctx, body)
	}
	if err != nil {
		return api.Response{}, err
	}
	return a.added(of, isNew), nil
}

// added answers with somebody who is registered now, or was already.
func (a *eventRequest) added(of registration.Registrant, isNew bool) api.Response {
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return api.Response{Status: status, Body: a.registrantOf(of)}
}

func (a *eventRequest) restore(ctx context.Context, body additionBody) (registration.Registrant, bool, error) {
	guests, err := a.site.Guests()
	if err != nil {
		return registration.Registrant{}, false, err
	}
	return guests.Restore(ctx, a.site.Name, a.id, body.Member, body.OverLimit)
}

func (a *eventRequest) removeRegistrant(ctx context.Context) (api.Response, error) {
	guests, err := a.site.Guests()
	if err == nil {
		_, err = guests.Remove(ctx, a.site.Name, a.id, a.member, a.Member.Name)
	}
	return api.Response{Status: http.StatusNoContent}, err
}

// eraseName erases the name of a walk-in who was removed.
func (a *eventRequest) eraseName(ctx context.Context) (api.Response, error) {
	guests, err := a.site.Guests()
	if err == nil {
		_, err = guests.EraseName(ctx, a.site.Name, a.id, a.member)
	}
	return api.Response{Status: http.StatusNoContent}, err
}

func (a *eventRequest) checkIn(ctx context.Context) (api.Response, error) {
	return a.changeCheckIn(ctx, true)
}

func (a *eventRequest) undoCheckIn(ctx context.Context) (api.Response, error) {
	return a.changeCheckIn(ctx, false)
}

// changeCheckIn reads from the query when the button was pressed: a phone without a network sends
// it later.
func (a *eventRequest) changeCheckIn(ctx context.Context, isIn bool) (api.Response, error) {
	var at time.Time
	if text := a.URL.Query().Get("at"); text != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return api.Response{}, errCheckTime
		}
	}
	guests, err := a.site.Guests()
	if err != nil {
		return api.Response{}, err
	}
	registrant, err := guests.CheckIn(ctx, a.site.Name, a.id, a.member, isIn, at)
	if err != nil {
		return api.Response{}, err
	}
	return api.Response{Body: a.registrantOf(registrant)}, nil
}

// csvColumns are the header of the export. Without a byte order mark, Excel takes UTF-8 for
// another encoding.
// A parser that does not know it takes it for a part of the first name, which has no quotes for that reason.
const csvColumns = "\ufeffEmail,Name,Registered (UTC),Added by,Cancelled (UTC),Cancelled by,Checked in (UTC),Waiting since (UTC)"

// exportRegistrants writes all registrants as CSV, a page at a time. A client sees from the
// connection if the end is missing. It may take longer for the whole than other requests may last: each
// piece has its bound.
func (a *eventRequest) exportRegistrants(ctx context.Context) (api.Response, error) {
	guests, err := a.site.Guests()
	if err != nil {
		return api.Response{}, err
	}
	e, err := a.service.Find(ctx, a.site.Name, a.id)
	if err != nil {
		return api.Response{}, err
	}
	isBegun := false
	out := bufio.NewWriter(a.Response)
	for page, err := range guests.AllRegistrants(a.Context(), a.site.Name, a.id) { //nolint:contextcheck // ctx ends after a minute
		switch {
		case err != nil && isBegun:
			a.logger.Error("cannot finish export of registrations", zap.String("site", a.site.Name), zap.Error(err))
			panic(http.ErrAbortHandler)
		case err != nil:
			return api.Response{}, err
		case !isBegun:
			isBegun = true
			a.beginCSV(e.Text("name"))
			if a.Method == http.MethodHead {
				return api.Response{IsWritten: true}, nil
			}
			_, _ = out.WriteString(csvColumns) // an error stays with out
			if a.site.SendsMail {
				_, _ = out.WriteString(",Not delivered")
			}
			_, _ = out.WriteString("\r\n")
		}
		_ = http.NewResponseController(a.Response).SetWriteDeadline(time.Now().Add(chunkTime)) // a writer without deadlines has those of Caddy
		for _, r := range page {
			a.writeCSV(out, r.Refused, r.Email, r.Name, csvTime(r.RegisteredAt), r.AddedBy, csvTime(r.CancelledAt), r.CancelledBy, csvTime(r.CheckedInAt), "")
		}
		if out.Flush() != nil {
			panic(http.ErrAbortHandler) // the reader has left, or is too slow
		}
	}
	list, err := guests.WaitingList(a.Context(), a.site.Name, a.id, registration.RegistrantQuery{Most: registration.MaxWaiting}) //nolint:contextcheck // as above
	_ = http.NewResponseController(a.Response).SetWriteDeadline(time.Now().Add(chunkTime))
	for _, w := range list.Waiters {
		a.writeCSV(out, nil, w.Email, w.Name, "", "", "", "", "", csvTime(w.Since))
	}
	if err != nil || out.Flush() != nil {
		panic(http.ErrAbortHandler) // the client sees that the end is missing
	}
	return api.Response{IsWritten: true}, nil
}

func (a *eventRequest) beginCSV(event string) {
	header := a.Response.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	header.Set("Content-Disposition", disposition(event, guestsSuffix))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	a.Response.WriteHeader(http.StatusOK)
}

// writeCSV writes a line, whose last cell is the mail that the server refused, where there are mails.
func (a *eventRequest) writeCSV(out *bufio.Writer, refused *registration.RefusedMail, cells ...string) {
	if a.site.SendsMail {
		text := ""
		if refused != nil {
			text = refused.Kind + ": " + refused.Text
		}
		cells = append(cells, text)
	}
	for i, value := range cells {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.WriteString(spreadsheet.Cell(value))
	}
	_, _ = out.WriteString("\r\n")
}

// csvTime writes a time as spreadsheets know it.
func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime)
}
