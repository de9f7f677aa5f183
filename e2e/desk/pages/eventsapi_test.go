package pages

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"

	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/handlers"
)

// answersEvents answers what the script of the event pages asks, and reports whether a
// request is that.
func (r *room) answersEvents(w http.ResponseWriter, request *http.Request) bool {
	path := strings.TrimPrefix(request.URL.Path, "/ghost")
	switch isPage := path == handlers.EventsPath && handlers.WantsPage(request); {
	case strings.HasSuffix(path, "/presence"):
		r.mu.Lock()
		defer r.mu.Unlock()
		json.NewEncoder(w).Encode(map[string]any{"others": r.others, "revision": 1})
	case !isPage && (strings.HasPrefix(path, handlers.EventsPath+"/") || path == handlers.EventsPath || path == handlers.LabelsPath):
		api := handlers.EventsAPI{Path: "/ghost", Platforms: "Ghost", Logger: zap.NewNop()}
		api.Serve(w, request, r.Site.Events, netip.MustParseAddr("192.0.2.1"))
	default:
		return false
	}
	return true
}
