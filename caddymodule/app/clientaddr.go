package app

import (
	"net/http"
	"net/netip"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// ClientAddr is the address of the client according to Caddy's trusted_proxies. All whose
// address is not known share the allowance of the invalid address. It warns once if the
// address is that of a proxy, which all behind it share.
func (a *App) ClientAddr(r *http.Request) netip.Addr {
	value, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	address, err := netip.ParseAddr(value)
	if err != nil {
		address = netip.Addr{} // of a Unix socket
	}
	if (!address.IsValid() || address.IsPrivate() || address.IsLoopback()) && !a.warnedOfProxy.Load() {
		a.warnOfProxy(r, address)
	}
	return address
}

func (a *App) warnOfProxy(r *http.Request, address netip.Addr) {
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	if trusted || r.Header["X-Forwarded-For"] == nil || a.warnedOfProxy.Swap(true) {
		return
	}
	proxy, write := address.String(), "trusted_proxies static private_ranges"
	if !address.IsValid() {
		proxy, write = "Unix socket", "trusted_proxies_unix"
	}
	a.logger.Warn("requests come from a proxy that is not trusted, so all readers behind it share one rate limit: write trusted_proxies and trusted_proxies_strict into the global option servers",
		zap.String("proxy", proxy), zap.String("write", write))
}
