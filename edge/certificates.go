package edge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/clip"
	"github.com/lychgate/caddy-lychgate/internal/issuance"
)

// This file keeps handshakes from waiting for certificates that cannot be had, and tells the
// operator of them. The web server gets the certificates.

const (
	// slowCertificate is how long an attempt may take before there is a line of it.
	slowCertificate = 20 * time.Second

	// storageInterval is how often a handshake may look for a certificate in the storage, which
	// another edge may have got, while no attempt is to be made.
	storageInterval = 30 * time.Second

	// wantedFor is longer than a handshake waits for a certificate.
	wantedFor = 200 * time.Second

	// maxProblem bounds why there is none, in code points.
	maxProblem = 1000
)

// issued is of the process, as certificates in memory are.
var issued = struct {
	*issuance.Log
	wanted sync.Map // when a handshake began to wait, by host
	slow   sync.Map // *time.Timer by host
}{Log: issuance.New(time.Now)}

// endAttempt stops the line of a slow attempt, which came to its end.
func endAttempt(host string) {
	if timer, ok := issued.slow.LoadAndDelete(host); ok {
		timer.(*time.Timer).Stop()
	}
}

// hasCertificate reports whether there is a certificate of a host in memory that is valid, from a time on.
func (b *base) hasCertificate(host string, from time.Time) bool {
	if b.Certificate == nil {
		return false
	}
	notBefore, notAfter, ok := b.Certificate(host)
	return ok && time.Now().Before(notAfter) && !notBefore.Before(from)
}

// CertificateWanted reports for how long no handshake is to wait for a certificate of a site's host, since
// the last attempt failed. If that is 0, one waits now. A certificate that is valid goes on meanwhile.
func (e *Edge) CertificateWanted(host string) (pause time.Duration) {
	if pause = issued.Pause(host); pause > 0 && e.hasCertificate(host, time.Time{}) {
		return 0
	}
	now := time.Now()
	if before, isWanted := issued.wanted.Load(host); pause > 0 && isWanted && now.Sub(before.(time.Time)) < storageInterval {
		return pause
	}
	issued.wanted.Store(host, now)
	return 0
}

// CertificateAsked notes an attempt, and reports for how long none is to be made while a handshake
// waits. Hosts that no site has are ignored.
func (e *Edge) CertificateAsked(host string) (pause time.Duration) {
	site, err := e.FindSite(host)
	if err != nil {
		return 0
	}
	if began, isWanted := issued.wanted.Load(host); isWanted && time.Since(began.(time.Time)) < wantedFor {
		if pause = issued.Pause(host); pause > 0 {
			return pause
		}
	}
	timer := time.AfterFunc(slowCertificate, func() {
		e.Logger.Warn("still waiting for certificate", zap.String("site", site.Name), zap.String("host", host), zap.Duration("after", slowCertificate))
	})
	if before, ok := issued.slow.Swap(host, timer); ok {
		before.(*time.Timer).Stop()
	}
	return 0
}

// CertificateObtained notes that a host has a certificate.
func (e *Edge) CertificateObtained(host string) {
	if _, err := e.FindSite(host); err == nil {
		certificatesTotal.WithLabelValues("obtained").Inc()
	}
	endAttempt(host)
	issued.wanted.Delete(host)
	issued.Forget(host)
}

// CertificateFailed notes that no certificate can be had for a host, or that the one that it has
// cannot be renewed.
func (e *Edge) CertificateFailed(host string, isRenewal bool, problem error) {
	endAttempt(host)
	site, err := e.FindSite(host)
	if err != nil {
		return
	}
	certificatesTotal.WithLabelValues("failed").Inc()
	f := issued.Failed(host, isRenewal, clip.Text(fmt.Sprint(problem), maxProblem))
	message := "cannot get certificate; handshakes fail at once until the next attempt"
	if isRenewal {
		message = "cannot renew certificate"
	}
	e.Logger.Warn(message, zap.String("site", site.Name), zap.String("host", host), zap.Time("since", f.Since),
		zap.Int("attempts", f.Attempts), zap.Time("next", f.NotBefore), zap.String("problem", f.Problem))
}

var (
	certificatesTotal = counter("certificates_total",
		"Attempts to get certificates for hosts of sites, by outcome (obtained, failed).", "outcome")

	certificatesDesc = prometheus.NewDesc("lychgate_certificates",
		"Hosts of sites by their certificate in this process: valid, expiring (less than a sixth of its lifetime is left), expired, "+
			"failing (there is none, and the last attempt failed).", []string{"state"}, nil)

	certificateStates = &collector{[]*prometheus.Desc{certificatesDesc}, ofRunning(collectCertificates)}
)

func collectCertificates(_ context.Context, u *Uses, metrics chan<- prometheus.Metric) {
	if u.base.Certificate == nil {
		return
	}
	failing, now := issued.Failing(), time.Now()
	counts := map[string]int{"valid": 0, "expiring": 0, "expired": 0, "failing": 0}
	for host := range *u.sites.served.live.Load() {
		notBefore, notAfter, ok := u.base.Certificate(host)
		_, hasFailed := failing[host]
		switch left := notAfter.Sub(now); {
		case !ok && hasFailed:
			counts["failing"]++
		case !ok: // nobody has asked for the host yet
		case left <= 0:
			counts["expired"]++
		case left < notAfter.Sub(notBefore)/6: // which is half of what the web server leaves when it renews
			counts["expiring"]++
		default:
			counts["valid"]++
		}
		delete(failing, host)
	}
	for host := range failing { // of sites that were removed
		issued.Forget(host)
		issued.wanted.Delete(host)
	}
	for state, n := range counts {
		metrics <- gauge(certificatesDesc, n, state)
	}
}
