package edge

import "github.com/lychgate/caddy-lychgate/internal/mail"

// NowServing is empty while no configuration serves members.
func NowServing() *Serving {
	if now := runningNow.Load(); now != nil {
		if serving := now.uses.members.Serving(); serving != nil {
			return serving
		}
	}
	return new(Serving)
}

// MailOf is what the mails of a site are sent to, nil for a site that sends none.
func (s *Events) MailOf(site string) *mail.Server { return s.mailOf(site) }
