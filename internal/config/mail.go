package config

import (
	"cmp"

	"github.com/lychgate/caddy-lychgate/internal/mail"
)

// Mail is how mails to those who have registered for events are sent.
type Mail struct {
	// URL is the SMTP server: smtp://user:password@smtp.example.com:587 for one with STARTTLS, or smtps:// for one with
	// TLS from the first byte; `off` for a site that sends none. Placeholders such as {env.SMTP_URL} are replaced. Required.
	URL string `json:"url,omitempty"`

	// From is the address that mails are from, with a name or without: The Daily <events@example.com>. Placeholders are
	// replaced. Required, but with `off`.
	From string `json:"from,omitempty"`
}

const noMail = "off"

// isOff reports whether no mails are to be sent.
func (m *Mail) isOff() bool { return m != nil && m.URL == noMail }

// Resolve checks the option, and returns how mails are sent; zero for no mails. No error has the URL.
func (m *Mail) Resolve(p Placeholders) (cfg mail.Config, err error) {
	switch {
	case m == nil:
	case !m.isOff():
		cfg, err = m.resolve(p)
	case m.From != "":
		err = &Mistake{Option: "from", Text: "is of no use with ‹mail off|\"url\": \"off\"›: leave it out"}
	}
	return cfg, In("mail", "mail", err)
}

func (m *Mail) resolve(p Placeholders) (cfg mail.Config, err error) {
	err = p.Use("", m.URL, func(value string) error {
		cfg.URL = value
		if err := mail.CheckURL(value); err != nil {
			return cmp.Or(checkVariable("", value), error(&Mistake{Text: literal(err.Error())}))
		}
		return nil
	})
	if err != nil {
		return cfg, inField("url", err)
	}
	if m.From == "" {
		return cfg, &Mistake{Field: "from", Text: `needs the address that mails are from, such as ‹from "The Daily <events@example.com>"|"The Daily <events@example.com>"›`}
	}
	err = p.Use("from", m.From, func(value string) error {
		cfg.From = value
		if err := mail.CheckFrom(value); err != nil {
			return &Mistake{Option: "from", Text: literal(err.Error())}
		}
		return nil
	})
	return cfg, err
}
