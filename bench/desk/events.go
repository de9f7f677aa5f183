package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/benchtest"
	"github.com/lychgate/caddy-lychgate/internal/test/caddytest"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
)

// This file measures what the edge adds when an editor opens an event and publishes it, and
// how large the editor's page is. The theme that a new Ghost has is to be active.

// publishings is how many events are published, at least.
const publishings = 60

// partyManifest has a type with every kind of custom field, and all standard fields.
const partyManifest = `manifest_version: 1
events:
  default_tags: [Events]
  types:
    party:
      post_template: custom-party
      required_fields: [name, event_date]
      custom_fields:
        - {key: motto, type: text, max_length: 60, help_text: "One line."}
        - {key: menu, type: textarea, max_length: 200, required: true}
        - {key: seats, type: number, min: 1, max: 10}
        - {key: dress, type: select, options: [casual, formal]}
        - {key: page, type: url}
        - {key: doors, type: date}
        - {key: outdoors, type: toggle}
        - {key: badge, type: image, aspect_ratio: "1:1", min_width: 300, max_file_size_kb: 100}
`

// party is an event that has all of that.
func party(slug string) map[string]any {
	return map[string]any{"theme": "source", "type": "party", "values": map[string]any{
		"name": "An evening at the old lychgate", "slug": slug, "description": "Two hours about what lets people in.",
		"feature_image": "https://news.example.com/content/images/gates.jpg", "event_date": "2100-06-01", "event_time_start": "19:00",
		"event_time_end": "21:00", "event_time_zone": "Europe/Berlin", "registration_deadline": "2100-05-31", "location": "The Pier", "platform_url": "https://meet.example.com/gates", "deadline_time_end": "12:00",
		"max_attendees": 120, "access": "free", "rsvp_labels": []string{"Guests"},
		"motto": "Cake for everybody", "menu": "Cake and tea", "seats": 4, "dress": "casual", "page": "https://news.example.com/about/",
		"doors": "2100-06-01", "outdoors": true, "badge": "https://news.example.com/content/images/badge.png",
	}}
}

// editor is one of the staff, with a session in Ghost and without a browser.
type editor struct {
	ghost        *ghosttest.Ghost
	edge, cookie string
}

// ask sends a request to a page of the desk, and returns the response and its body as it came.
func (e editor) ask(ctx context.Context, method, target string, body any) (*http.Response, []byte, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, e.edge+target, bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	// The edge is at the address that Ghost knows, as in production.
	request.Host = strings.TrimPrefix(e.ghost.URL, "http://")
	request.Header.Set("Origin", e.ghost.URL)
	request.Header.Set("Cookie", e.cookie)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Encoding", "gzip")
	if method == http.MethodGet {
		request.Header.Set("Accept", "text/html")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	return response, reply, err
}

// measureEvents measures all of that.
func measureEvents(ctx context.Context, ghost *ghosttest.Ghost) error {
	folder, err := os.MkdirTemp("", "lychgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	before, err := benchtest.NewProxy(ghost.URL)
	if err != nil {
		return err
	}
	defer before.Close()
	if err := declare(ctx, filepath.Join(folder, "lychgate.db"), partyManifest); err != nil {
		return err
	}
	edge, err := caddytest.Start(folder, pagesCaddyfile, caddytest.Values{"ghost": before.URL, "key": ghost.Key, "encode": "encode"})
	if err != nil {
		return err
	}
	defer edge.Stop()
	cookie, err := signIn(ctx, ghost)
	if err != nil {
		return err
	}
	e := editor{ghost, "http://127.0.0.1:" + edge.Port + "/ghost/lychgate/desk/", cookie}
	ids, err := e.draft(ctx, max(*rounds, publishings)+3)
	if err != nil {
		return err
	}
	fmt.Printf("%-22s %17s %17s %17s %17s   %s\n", "median and p95", "", "of it Ghost", "a plain client", "the edge's share", "requests to Ghost")
	page := "events?event=" + ids[0]
	err = e.repeat(ctx, "opening the editor", before, func() error {
		response, got, err := e.ask(ctx, http.MethodGet, page, nil)
		return failed(response, got, err)
	}, len(ids))
	if err != nil {
		return err
	}
	next := 0
	err = e.repeat(ctx, "publishing", before, func() error {
		response, got, err := e.ask(ctx, http.MethodPost, "events/"+ids[next]+"/publish", nil)
		next++
		return failed(response, got, err)
	}, len(ids))
	if err != nil {
		return err
	}
	return e.weigh(ctx, page)
}

// draft keeps events that are not published, and returns their IDs.
func (e editor) draft(ctx context.Context, count int) ([]string, error) {
	var ids []string
	for i := range count {
		response, got, err := e.ask(ctx, http.MethodPost, "events", party(fmt.Sprintf("party-%d-%d", time.Now().Unix(), i)))
		if err != nil {
			return nil, err
		}
		_, id, ok := strings.Cut(response.Header.Get("Location"), "/events/")
		if response.StatusCode != http.StatusCreated || !ok {
			return nil, fmt.Errorf("a draft: %s: %.500s", response.Status, got)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// A status other than 200 is an error too, such as 202: Ghost does not have the event yet.
func failed(response *http.Response, body []byte, err error) error {
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.500s", response.Status, body)
	}
	return err
}

// hop is in milliseconds: how much longer a plain client waits than Ghost takes for one
// request.
func (e editor) hop(ctx context.Context, before *benchtest.Proxy) (float64, error) {
	start := time.Now()
	e.edge = before.URL + "/ghost/api/admin/"
	response, got, err := e.ask(ctx, http.MethodGet, "posts/?limit=1", nil)
	end := time.Now()
	took, _ := before.Busy(start, end)
	return (end.Sub(start) - took).Seconds() * 1e3, failed(response, got, err)
}

// repeat does something so often, and prints how long that takes. A plain client's way to
// Ghost, and back, for as many requests, is not the edge's share. Three times warm up.
func (e editor) repeat(ctx context.Context, name string, before *benchtest.Proxy, do func() error, count int) error {
	var all, ghosts, hops, shares, asked []float64
	for round := range count {
		start := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		end := time.Now()
		took, requests := before.Busy(start, end)
		hop, err := e.hop(ctx, before)
		if err != nil {
			return err
		}
		if round >= 3 {
			all, ghosts = append(all, end.Sub(start).Seconds()*1e3), append(ghosts, took.Seconds()*1e3)
			hops, asked = append(hops, hop*float64(requests)), append(asked, float64(requests))
		}
	}
	for i := range all {
		shares = append(shares, all[i]-ghosts[i]-benchtest.Median(hops))
	}
	fmt.Printf("%-22s", name)
	for _, values := range [][]float64{all, ghosts, hops, shares} {
		fmt.Printf(" %6.1f %7.1f ms", benchtest.Median(values), p95(values))
	}
	fmt.Printf("   %.0f (%.0f to %.0f), of %d\n", benchtest.Median(asked), slices.Min(asked), slices.Max(asked), len(all))
	return nil
}

func p95(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)*95/100]
}

var loadedByPage = regexp.MustCompile(`(?:src|href)="[^"]*/lychgate/desk/([^"]+\?v=[^"]+)"`)

// weigh prints how large a page is, with all that it loads.
func (e editor) weigh(ctx context.Context, page string) error {
	sum := 0
	weigh := func(target string) ([]byte, error) {
		response, small, err := e.ask(ctx, http.MethodGet, target, nil)
		if err := failed(response, small, err); err != nil {
			return nil, err
		}
		if response.Header.Get("Content-Encoding") != "gzip" {
			return nil, errors.New(target + " is not compressed")
		}
		unzip, err := gzip.NewReader(bytes.NewReader(small))
		if err != nil {
			return nil, err
		}
		plain, err := io.ReadAll(unzip)
		name, _, _ := strings.Cut(target, "?")
		fmt.Printf("%-22s %6d bytes, %6d with gzip\n", name, len(plain), len(small))
		sum += len(small)
		return plain, err
	}
	text, err := weigh(page)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), `data-key="badge"`) {
		return fmt.Errorf("no editor: %.500s", text)
	}
	for _, found := range loadedByPage.FindAllStringSubmatch(string(text), -1) {
		if _, err := weigh(found[1]); err != nil {
			return err
		}
	}
	fmt.Printf("%-22s %26d with gzip\n", "all of the editor", sum)
	return nil
}
