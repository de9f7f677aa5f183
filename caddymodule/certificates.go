package caddymodule

import (
	"context"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"
)

// This file tells the edge of the certificates that Caddy gets.

// followCertificates has the edge told of attempts to get certificates.
func (a *App) followCertificates(ctx caddy.Context) error {
	loaded, err := ctx.App("events")
	if err != nil {
		return err
	}
	for _, name := range []string{"cert_obtaining", "cert_obtained", "cert_failed"} {
		if err := loaded.(*caddyevents.App).On(name, certificateEvents{a}); err != nil {
			return err
		}
	}
	return nil
}

// certificateEvents handles Caddy's events of certificates.
type certificateEvents struct{ app *App }

// Handle ends an attempt that comes too soon after a failed one while a handshake waits.
func (h certificateEvents) Handle(_ context.Context, event caddy.Event) error {
	host, _ := event.Data["identifier"].(string)
	isRenewal, _ := event.Data["renewal"].(bool)
	switch event.Name() {
	case "cert_obtained":
		h.app.Edge.CertificateObtained(host)
	case "cert_failed":
		problem, _ := event.Data["error"].(error)
		h.app.Edge.CertificateFailed(host, isRenewal, problem)
	case "cert_obtaining":
		if pause := h.app.Edge.CertificateObtaining(host, isRenewal); pause > 0 {
			err := fmt.Errorf("%w: the last attempt failed; the next may be made in %s", caddy.ErrEventAborted, pause.Round(time.Second))
			if isRenewal { // CertMagic goes on with this one, or each handshake would begin another
				return err
			}
			return certmagic.ErrNoRetry{Err: err}
		}
	}
	return nil
}

// findTLS finds out whether there is Caddy's app tls, once all apps are provisioned.
func (a *App) findTLS() {
	_, err := a.ctx.AppIfConfigured("tls")
	a.hasTLS.Store(err == nil)
}

// certificateOf has the times of the certificate in memory that is valid for longest.
func (a *App) certificateOf(host string) (notBefore, notAfter time.Time, ok bool) {
	if !a.hasTLS.Load() {
		return notBefore, notAfter, false
	}
	for _, c := range caddytls.AllMatchingCertificates(host) {
		if c.Leaf != nil && c.Leaf.NotAfter.After(notAfter) {
			notBefore, notAfter, ok = c.Leaf.NotBefore, c.Leaf.NotAfter, true
		}
	}
	return notBefore, notAfter, ok
}

// Interface guard
var _ caddyevents.Handler = certificateEvents{}
