package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/test/smtptest"
)

// Whoever has written a password wrong learns it before a reader waits for a mail.
func TestMailIsChecked(t *testing.T) {
	server := smtptest.Start(t, smtptest.Options{User: "jo", Password: "secret"})
	of := func(url string) *mail.Server {
		s, err := mail.New(mail.Config{URL: url, From: "The Daily <events@example.com>"})
		if err != nil {
			t.Fatalf("mail.New: %v", err)
		}
		return s
	}
	got := results(t, Config{
		Mail:  of("smtp://jo:secret@" + server.Address),
		Sites: []Site{{Name: "daily"}, {Name: "weekly", Mail: of("smtp://jo:wr0ng@" + server.Address)}, {Name: "away", Mail: of("smtp://127.0.0.1:1")}},
	})
	const fix = "correct the address, user or password in mail, or ask the provider of the server"
	want := []Result{
		{"mail", OK, "# is ready to send; mails are from The Daily <events@example.com>", ""},
		{"site weekly, mail", Failed, `signing in at # as "jo" failed: the server said 535 5.7.8 no such user, or another password`, fix},
		{"site away, mail", Failed, "cannot connect to #: dial tcp #: connect: connection refused", fix},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if mails := server.Mails(); mails != nil {
		t.Errorf("sent: %+v", mails)
	}
}
