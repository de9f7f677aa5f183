package edge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/lib/clip"
	"github.com/lychgate/caddy-lychgate/internal/lib/issuance"
)

// This file keeps handshakes from waiting for certificates that cannot be had, and tells the
// operator of them. The web server gets the certificates.

const (
	// slowCertificate is how long an attempt may take before the log says so.
	slowCertificate = 20 * time.Second

	// backdating is longer than a certificate is valid before it was issued, which is an hour of Let's Encrypt's.
	backdating = 2 * time.Hour

	// maxProblem bounds why there is no certificate, in code points.
	maxProblem = 1000
)

// The certificates in memory are those of the process, and so is what is known of those that are not.
var (
	issued       = issuance.New(time.Now)
	slowAttempts sync.Map // *time.Timer by host
)

// endAttempt stops the timer that would log a slow attempt.
func endAttempt(host string) {
	if timer, ok := slowAttempts.LoadAndDelete(host); ok {
		timer.(*time.Timer).Stop()
	}
}

// hasCertificate reports whether there is a certificate of a host in memory that is valid, and was issued
// after a time.
func (b *base) hasCertificate(host string, after time.Time) bool {
	if b.Certificate == nil {
		return false
	}
	notBefore, notAfter, ok := b.Certificate(host)
	return ok && time.Now().Before(notAfter) && !notBefore.Before(after)
}

// withoutCertificate has the last failure of each host of a site that has no valid certificate, or only one
// that could not be renewed. It forgets the others, for which another edge may have got one.
func (u *Uses) withoutCertificate() map[string]issuance.Failure {
	failures := issued.Failing()
	for host, failure := range failures {
		var after time.Time
		if failure.Renewal {
			after = failure.Last.Add(-backdating)
		}
		if u.sites.served.at(host) == nil || u.base.hasCertificate(host, after) {
			issued.Forget(host)
			delete(failures, host)
		}
	}
	return failures
}

// CertificateWanted returns for how long no handshake is to wait for a certificate of a site's host, since
// the last attempt failed: 0 if one is about to. A certificate that is valid serves meanwhile.
func (e *Edge) CertificateWanted(host string) (pause time.Duration) {
	if issued.IsPaused(host) && e.hasCertificate(host, time.Time{}) {
		return 0
	}
	return issued.Wait(host)
}

// CertificateObtaining returns for how long no attempt is to be made, of a renewal or while a handshake
// waits: 0 if one begins. Hosts that no site has are ignored, here and below.
func (e *Edge) CertificateObtaining(host string, isRenewal bool) (pause time.Duration) {
	site, err := e.FindSite(host)
	if err != nil {
		return 0
	}
	if pause = issued.Begin(host, isRenewal); pause > 0 {
		return pause
	}
	timer := time.AfterFunc(slowCertificate, func() {
		e.Logger.Warn("still waiting for certificate", zap.String("site", site.Name), zap.String("host", host), zap.Duration("after", slowCertificate))
	})
	if before, ok := slowAttempts.Swap(host, timer); ok {
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
	issued.Forget(host)
}

// CertificateFailed notes that no certificate was issued for a host, or that its certificate was not
// renewed.
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

	certificateAgeDesc = prometheus.NewDesc("lychgate_site_certificate_failing_age_seconds",
		"How long no certificate can be had for a host of a site, or be renewed, in this process: of the 10 hosts for which it is longest.", []string{"site", "host"}, nil)

	certificateExpiryDesc = prometheus.NewDesc("lychgate_site_certificate_expiry_timestamp_seconds",
		"When the certificate of a host of a site expires that this process has in memory: of the 10 hosts where it is soonest.", []string{"site", "host"}, nil)

	certificateStates = &collector{[]*prometheus.Desc{certificatesDesc, certificateAgeDesc, certificateExpiryDesc}, ofRunning(collectCertificates)}
)

func collectCertificates(_ context.Context, u *Uses, metrics chan<- prometheus.Metric) {
	if u.base.Certificate == nil {
		return
	}
	failures, now := u.withoutCertificate(), time.Now()
	counts := map[string]int{"valid": 0, "expiring": 0, "expired": 0, "failing": 0}
	expiries := make(map[string]time.Time)
	for host := range *u.sites.served.live.Load() {
		notBefore, notAfter, ok := u.base.Certificate(host)
		_, hasFailed := failures[host]
		if ok {
			expiries[host] = notAfter
		}
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
	}
	for state, n := range counts {
		metrics <- gauge(certificatesDesc, n, state)
	}
	send := func(of *prometheus.Desc, host string, n int) {
		if site := u.sites.served.at(host); site != nil { // still
			metrics <- gauge(of, n, site.Name, host)
		}
	}
	for _, host := range firstHosts(failures, func(a, b issuance.Failure) int { return a.Since.Compare(b.Since) }) {
		send(certificateAgeDesc, host, int(now.Sub(failures[host].Since).Seconds()))
	}
	for _, host := range firstHosts(expiries, time.Time.Compare) {
		send(certificateExpiryDesc, host, int(expiries[host].Unix()))
	}
}

// firstHosts has the first hosts in an order, as many as a metric may name.
func firstHosts[V any](of map[string]V, compare func(a, b V) int) []string {
	hosts := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(compare(of[a], of[b]), cmp.Compare(a, b))
	})
	return hosts[:min(len(hosts), maxNamed)]
}
