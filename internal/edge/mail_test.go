package edge_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/lychgate/caddy-lychgate/internal/config"
	"github.com/lychgate/caddy-lychgate/internal/edge"
	"github.com/lychgate/caddy-lychgate/internal/mail"
	"github.com/lychgate/caddy-lychgate/internal/sites"
)

// mailEdge has a site for each way to say how its mails are sent, of the configuration and in the store.
func (s *storedEdges) mailEdge(global *config.Mail, secrets ...string) (*edge.Edge, *edge.Events) {
	s.t.Helper()
	site := func(host string, m *config.Mail) *config.Site {
		return &config.Site{Hosts: []string{host}, Platform: &config.Platform{Kind: "none"}, Mail: m}
	}
	e, err := edge.New(edge.Options{
		Config: &config.Config{
			Store: &config.Store{Kind: "sqlite", Source: s.file}, Secrets: secrets, Mail: global,
			Sites: map[string]*config.Site{
				"plain": site("plain.example", nil), "off": site("off.example", &config.Mail{URL: "off"}),
				"own": site("own.example", &config.Mail{URL: "smtp://own.example.com", From: "own@example.com"}),
			},
		},
		Logger: zap.NewNop(), Registry: prometheus.NewPedanticRegistry(),
	})
	var events *edge.Events
	if err == nil {
		events, err = e.UseEvents()
	}
	if err == nil {
		err = e.Start()
	}
	if err != nil {
		s.t.Fatalf("starting an edge: %v", err)
	}
	return e, events
}

// A mail is sent as its site says, or else as all sites' are. The queue tells servers apart by their value, so a reload
// and a change of something else keep it.
func TestMailOfSites(t *testing.T) {
	s := newStoredEdges(t, firstSecret)
	kept := func(name, settings string, secrets map[string]string) sites.Site {
		return sites.Site{Name: name, Hosts: []string{name + ".example"}, Settings: json.RawMessage(settings), Secrets: secrets}
	}
	sealed := kept("sealed", `{"platform":{"kind":"none"},"mail":{"from":"sealed@example.com"}}`, map[string]string{"mail.url": "smtps://jo:hunter2@sealed.example.com"})
	if err := s.sites.Add(t.Context(), sealed, kept("stored", `{"platform":{"kind":"none"}}`, nil), kept("silent", `{"platform":{"kind":"none"},"mail":{"url":"off"}}`, nil)); err != nil {
		t.Fatalf("Add: %v", err)
	}
	names := []string{"plain", "own", "off", "stored", "sealed", "silent", "nobody"}
	servers := func(events *edge.Events) map[string]*mail.Server {
		all := make(map[string]*mail.Server)
		for _, name := range names {
			all[name] = events.MailOf(name)
		}
		return all
	}
	hosts := func(of map[string]*mail.Server) map[string]string {
		all := make(map[string]string)
		for name, server := range of {
			if server != nil {
				all[name] = server.Host() + " " + server.From()
			}
		}
		return all
	}
	all := &config.Mail{URL: "smtp://all.example.com", From: "all@example.com"}
	first, events := s.mailEdge(all, firstSecret)
	before := servers(events)
	const ofAll, ofOwn, ofSealed = "all.example.com:587 all@example.com", "own.example.com:587 own@example.com", "sealed.example.com:465 sealed@example.com"
	if diff := cmp.Diff(map[string]string{"plain": ofAll, "own": ofOwn, "stored": ofAll, "sealed": ofSealed}, hosts(before)); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}

	second, events := s.mailEdge(all, firstSecret)
	s.end(first)
	same := func(a, b *mail.Server) bool { return a == b }
	if diff := cmp.Diff(before, servers(events), cmp.Comparer(same)); diff != "" {
		t.Errorf("servers after a reload (-want +got):\n%s", diff)
	}
	changed, err := s.sites.Find(t.Context(), "sealed")
	if err != nil {
		t.Fatalf("Find: %v", err)
	}
	changed.Hosts = []string{"moved.example"}
	if err := s.sites.Replace(t.Context(), changed); err != nil {
		t.Fatalf("Replace: %v", err)
	}
	if err := second.Stored().Refresh(t.Context()); err != nil {
		t.Fatalf("Refresh: %v", err)
	}
	if diff := cmp.Diff(before, servers(events), cmp.Comparer(same)); diff != "" {
		t.Errorf("servers after a change of a host (-want +got):\n%s", diff)
	}

	third, events := s.mailEdge(nil, secondSecret)
	s.end(second)
	if diff := cmp.Diff(map[string]string{"own": ofOwn}, hosts(servers(events))); diff != "" {
		t.Errorf("servers without a global one, and without the secret (-want +got):\n%s", diff)
	}
	s.end(third)
}
