package caddymodule_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lychgate/caddy-lychgate/caddymodule"
	"github.com/lychgate/caddy-lychgate/internal/config"
)

// registered has the names of Lychgate's series. A histogram has three.
func registered(t *testing.T) map[string]bool {
	t.Helper()
	ctx, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatalf("caddy.ProvisionContext: %v", err)
	}
	registry := ctx.GetMetricsRegistry()
	app := &caddymodule.App{Config: config.Config{Resolvers: []string{"127.0.0.1"}}}
	if err := app.Provision(ctx); err != nil {
		t.Fatalf("app.Provision: %v", err)
	}
	defer func() {
		if err := app.Cleanup(); err != nil {
			t.Errorf("app.Cleanup: %v", err)
		}
	}()
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	names := make(map[string]bool)
	name := regexp.MustCompile(`fqName: "(lychgate_\w+)"`)
	for description := range descriptions {
		match := name.FindStringSubmatch(description.String())
		if match == nil {
			continue
		}
		names[match[1]] = true
		if strings.HasSuffix(match[1], "_seconds") {
			names[match[1]+"_bucket"], names[match[1]+"_sum"], names[match[1]+"_count"] = true, true, true
		}
	}
	return names
}

// An operator's dashboard shows no empty panel, and no alert stays silent, because
// a metric has another name; nor does a page send somebody to look for one.
func TestMetricsThatDocsName(t *testing.T) {
	known := registered(t)
	if !known["lychgate_members_behind"] || !known["lychgate_dns_query_duration_seconds_count"] {
		t.Fatalf("the registered metrics were not found: %v", slices.Sorted(maps.Keys(known)))
	}
	name := regexp.MustCompile(`\blychgate_\w+`)
	for _, file := range []string{
		"../docs/grafana/dashboard.json", "../docs/grafana/rules.yaml", "../docs/grafana/rules_test.yaml",
		"../docs/grafana/README.md", "../docs/troubleshooting.md", "../docs/deployment.md",
		"../docs/inbox_provider.md", "../docs/members_operating.md", "../docs/theme_manifest.md", "../docs/staff_desk.md",
		"../docs/sites.md", "../docs/fleet.md",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("os.ReadFile: %v", err)
		}
		found := name.FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, metric := range found {
			if !known[metric] {
				t.Errorf("%s names %s, which is no metric", file, metric)
			}
		}
	}
}

// Every metric has its place on the dashboard.
func TestDashboardShowsEveryMetric(t *testing.T) {
	text, err := os.ReadFile("../docs/grafana/dashboard.json")
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatalf("json.Unmarshal: %v", err)
	}
	name := regexp.MustCompile(`\blychgate_\w+`)
	base := strings.NewReplacer("_seconds_bucket", "_seconds", "_seconds_count", "_seconds", "_seconds_sum", "_seconds")
	shown := make(map[string]bool)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, metric := range name.FindAllString(target.Expr, -1) {
				shown[base.Replace(metric)] = true
			}
		}
	}
	want := make(map[string]bool)
	for metric := range registered(t) {
		want[base.Replace(metric)] = true
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}
