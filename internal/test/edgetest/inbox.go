package edgetest

import (
	"net/http"

	"github.com/lychgate/caddy-lychgate/internal/test/dnstest"
)

// Zone has domains whose mail servers are recognized, and others.
var Zone = dnstest.Zone(map[string][]string{
	"workspace.example": {"workspace.example. 300 IN MX 1 aspmx.l.google.com.", "workspace.example. 300 IN MX 5 alt1.aspmx.l.google.com."},
	"tenant.example":    {"tenant.example. 300 IN MX 0 tenant-example.mail.protection.outlook.com."},
	"mixed.example":     {"mixed.example. 300 IN MX 1 aspmx.l.google.com.", "mixed.example. 300 IN MX 1 mx.example.net."},
	"nomail.example":    {"nomail.example. 300 IN MX 0 ."},
})

// JSONResponse is a response of the endpoint that any page may read.
func JSONResponse(status int, cacheControl, body string, header ...string) Response {
	r := Response{Status: status, Body: body, Header: map[string]string{
		"Access-Control-Allow-Origin": "*",
		"Content-Type":                "application/json",
		"Cache-Control":               cacheControl,
	}}
	if status != http.StatusOK {
		r.Header["X-Content-Type-Options"] = "nosniff"
	}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = header[i+1]
	}
	return r
}

// LookupPath is a lookup that needs no DNS.
const LookupPath = "/ghost/inbox-provider?domain=gmail.com"
