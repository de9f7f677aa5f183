package desk

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"html/template"
	"net/http"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/web/desk"
)

// This file writes pages, and those that say why there is none.

// titles are those of pages that say what is wrong, by status.
var titles = map[int]string{
	http.StatusUnauthorized:       "Sign in first",
	http.StatusForbidden:          "Not allowed",
	http.StatusNotFound:           "Not found",
	http.StatusTooManyRequests:    "Too many requests",
	http.StatusBadGateway:         "Not available now",
	http.StatusServiceUnavailable: "Not available now",
}

// maxAgain bounds the query of the address to go on at, in bytes. Anybody may send one, and
// it grows tenfold when it is escaped.
const maxAgain = 2000

// refuse shows a page that says what is wrong.
func (d *Desk) refuse(w http.ResponseWriter, v *view, operation string, err error) api.Served {
	failure := d.failureOf(v, operation, err)
	failure.SetRetryAfter(w.Header())
	message := struct{ Message, SignIn, Platform, Again string }{Message: clip.Text(failure.Message, maxMessage)}
	if failure.Status == http.StatusUnauthorized {
		message.SignIn, message.Platform, message.Again = v.signIn(), v.platform(), operation
		if query := v.request.URL.RawQuery; query != "" && len(query) <= maxAgain {
			message.Again += "?" + v.request.URL.RawQuery
		}
	}
	title, ok := titles[failure.Status]
	if !ok {
		title = "Something went wrong"
	}
	d.write(w, failure.Status, v, title, "message", message)
	return api.Served{Operation: operation, Outcome: failure.Outcome}
}

// signIn is the address of the platform's admin.
func (v *view) signIn() string {
	here := v.desk.Path + "/"
	if v.site == nil {
		return here
	}
	if at := v.site.Staff.AdminElsewhere(v.request); at != nil {
		return at.Scheme + "://" + at.Host + here
	}
	return here
}

// frame is what all pages have in common.
type frame struct {
	Title, Admin, Platform string
	Site                   string
	Nonce                  string // of the script and the style
	Pages                  []link
	Body                   template.HTML // made by a template
	Assets                 string        // the name of its script and its style, without the extension
	Scheme                 string        // of its colours: dark, light, or "" for the system's
	Zone                   string        // of its times, "" for that of the browser

	path string
}

type link struct {
	Title, Address string
	IsCurrent      bool
}

// Style is the name of the style with the colours of the scheme.
func (f frame) Style() string { return desk.StyleOf(f.Assets, f.Scheme) }

func (f frame) Asset(name string) string {
	return f.path + "/" + name + "?v=" + desk.Assets[name].Version
}

func (v *view) frame(title, name string) frame {
	f := frame{Title: title, Admin: v.desk.Path, Platform: v.platform(), Assets: cmp.Or(pages[name].assets, "desk"), Scheme: v.member.Scheme, path: v.desk.Path + Path}
	for _, other := range order {
		if page := pages[other]; page.isFor(v.site) && page.may(v.member.Permissions) {
			f.Pages = append(f.Pages, link{page.title, f.path + "/" + other, other == cmp.Or(pages[name].of, name)})
		}
	}
	if v.zone != nil {
		f.Zone = v.zone.String()
	}
	if len(f.Pages) > 0 { // the visitor is one of the staff
		f.Site = cmp.Or(clip.Text(v.title, maxLabel), v.site.Name)
	}
	return f
}

// The Content-Security-Policy allows a page nothing but what the desk itself has, and an
// response that is no page nothing. The script and the style are known by a number that each
// page has another of: by their host, files that others have uploaded to the site would be
// allowed too.
const (
	noPolicy   = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"
	pagePolicy = "default-src 'none'; script-src 'nonce-%[1]s'; style-src 'nonce-%[1]s'; img-src 'self' blob:%[2]s; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

	// attributesPolicy is for mails, whose elements have styles of their own.
	attributesPolicy = "; style-src-attr 'unsafe-inline'"
)

// secure sets the headers that all responses have, redirections too.
func secure(header http.Header) {
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", noPolicy)
	header.Set("Referrer-Policy", "same-origin")
	header.Set("X-Content-Type-Options", "nosniff")
}

// write writes a page, whose content a template shows.
func (d *Desk) write(w http.ResponseWriter, status int, v *view, title, name string, content any) {
	var body, page bytes.Buffer
	f := v.frame(title, name)
	f.Nonce = cmp.Or(v.nonce, rand.Text())
	err := desk.Templates.ExecuteTemplate(&body, name+".html", content)
	if err == nil {
		f.Body = template.HTML(body.String()) //nolint:gosec // a template escaped it
		err = desk.Templates.ExecuteTemplate(&page, "frame.html", f)
	}
	if err != nil {
		d.Logger.Error("cannot render desk page", zap.String("page", name), zap.Error(err))
		status = http.StatusInternalServerError
		page.Reset()
		page.WriteString("<!DOCTYPE html><title>Something went wrong</title><p>This page cannot be shown.</p>")
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	policy := fmt.Sprintf(pagePolicy, f.Nonce, v.pictures)
	if v.stylesAttributes {
		policy += attributesPolicy
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // an error means that the reader has left
}
