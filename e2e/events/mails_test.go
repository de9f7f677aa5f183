package events

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	netmail "net/mail"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
	"github.com/lychgate/caddy-lychgate/e2e/harness"
	"github.com/lychgate/caddy-lychgate/internal/events"
	"github.com/lychgate/caddy-lychgate/internal/events/messaging"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/registration/mails"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

// mailsIn are the HTML of a confirmation and of a message of the staff, in a language.
func (s *mailStage) mailsIn(language string) map[string][]byte {
	s.t.Helper()
	taken := smtptest.Start(s.t, smtptest.Options{NoSTARTTLS: true})
	server, err := mail.New(mail.Config{URL: "smtp://" + taken.Address, From: "events@example.com", Roots: taken.Roots})
	must(s.t, server, err)
	publication := platform.Publication{Title: "The Daily", URL: "https://news.example.com/", Language: language, Accent: "#ff1a75"}
	told := mails.New(mails.Config{
		DB: s.db, Events: s.store, Queue: s.queue, Guests: s.registrations.Guests, Logger: zap.NewNop(), Now: time.Now,
		Server: func(string) *mail.Server { return server },
		Publication: func(context.Context, string) (events.ForMails, bool) {
			return events.ForMailsOf(publication, "/ghost/lychgate/events"), true
		},
		LinkKey: func(string) []byte { return []byte("key") },
		Sent:    func(string, string, string) {},
	})
	s.registrations.Tell(told)
	s.register("jane", language)
	for range 3 { // what is due for an event has mails sent
		must(s.t, 0, s.queue.DoDue(s.t.Context()))
	}
	all := taken.Mails()
	if len(all) != 1 {
		s.t.Fatalf("%d mails, want a confirmation", len(all))
	}
	message, err := told.Preview(s.t.Context(), "daily", mailEvent, mails.Draft{
		Subject: "Where to park", Text: "Use the north gate.\n\nSee https://example.com/" + strings.Repeat("x", 80) + ".",
	})
	must(s.t, message, err)
	return map[string][]byte{"confirmation": htmlOf(s.t, all[0].Data), "message": []byte(message.HTML)}
}

// htmlOf is the HTML of a mail as it is sent.
func htmlOf(t *testing.T, data string) []byte {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatalf("netmail.ReadMessage: %v", err)
	}
	var find func(contentType string, body io.Reader) []byte
	find = func(contentType string, body io.Reader) []byte {
		kind, parameters, err := mime.ParseMediaType(contentType)
		must(t, kind, err)
		if !strings.HasPrefix(kind, "multipart/") {
			return nil
		}
		for parts := multipart.NewReader(body, parameters["boundary"]); ; {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			must(t, part, err)
			if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
				text, err := io.ReadAll(quotedprintable.NewReader(part))
				return must(t, text, err)
			}
			if html := find(part.Header.Get("Content-Type"), part); html != nil {
				return html
			}
		}
	}
	return find(m.Header.Get("Content-Type"), m.Body)
}

// Mails have nothing wider than the window, and shut nobody out. Rules about landmarks of pages are none of a mail's.
func TestElementsOfMails(t *testing.T) {
	for _, language := range []string{"de", "ar"} {
		for kind, html := range newMailStage(t).mailsIn(language) {
			served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				io.Copy(w, bytes.NewReader(html))
			}))
			t.Cleanup(served.Close)
			for _, scheme := range []string{"light", "dark"} {
				for _, width := range []int64{320, 390, 600} {
					name := "mail-" + kind + "-" + language + "-" + scheme + "-" + strconv.FormatInt(width, 10)
					t.Run(name, func(t *testing.T) {
						p := browser.Open(t, harness.Engine, served.URL, browser.Look{Width: width, Height: 900, Media: map[string]string{"prefers-color-scheme": scheme}}, "")
						p.Until("document.readyState === 'complete'")
						diff(t, "direction", messaging.Direction(language), browser.JS[string](p, "document.documentElement.dir"))
						fits(t, p, name, "region", "landmark-one-main")
					})
				}
			}
		}
	}
}
