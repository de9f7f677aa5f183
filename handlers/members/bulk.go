package members

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers/api"
)

// Pass passes a request on that is not for the API. If it is one to the platform that
// changes members without webhook events, such as what staff do to many at once, and
// the platform did it, the site's members are compared with the platform's. The error
// is that of next.
func (h *API) Pass(w http.ResponseWriter, r *http.Request, site *Site, next api.Next) error {
	later, overlooked := site.Inbound.ChangesInBulk(site.Members.Site, r.Method, r.URL.Path)
	if !overlooked {
		return next(w, r)
	}
	ctx, cancel := api.Outlive(r.Context()) // the caller may leave, and the platform does it all the same
	defer cancel()
	response := &api.BufferedResponse{ResponseWriter: w, Max: api.BufferNothing}
	defer func() { // also when the response does not get through, for which Caddy panics
		var noted error
		switch response.Status {
		case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
			noted = site.Inbound.CompareSoon(ctx, site.Members.Site, later...)
		case 0, http.StatusBadGateway, http.StatusGatewayTimeout: // the platform may be at it
			if site.Inbound.HasCredentials(site.Members.Site, r.Header.Get("Cookie"), r.Header.Get("Authorization")) {
				noted = site.Inbound.CompareLater(ctx, site.Members.Site)
			}
		}
		if noted != nil {
			h.Logger.Error("cannot store that members were changed in bulk", zap.Error(noted))
		}
	}()
	return next(response, r.WithContext(ctx))
}
