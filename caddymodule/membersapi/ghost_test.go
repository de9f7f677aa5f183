package membersapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/members"
	"github.com/lychgate/caddy-lychgate/internal/platform"
	"github.com/lychgate/caddy-lychgate/internal/platform/ghost"
	"github.com/lychgate/caddy-lychgate/internal/test/edgetest"
	"github.com/lychgate/caddy-lychgate/internal/test/exchange"
	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
	"github.com/lychgate/caddy-lychgate/memberstore"
)

// The whole way: a CRM, Caddy, the store, and a real Ghost.
func TestMembersWithGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(edgetest.SQLiteStore(t), edgetest.GhostPlatform(url, key, "off")))
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	email := "jane+" + unique + "@example.com"

	created := e.Write(edgetest.FormKey, "POST", "", `{"email":"`+email+`","name":"Jane","labels":["VIP"],"note":"from the CRM"}`)
	if created.Status != 200 || !strings.Contains(created.Body, `"success":true`) || created.Header["Lychgate-Sync"] != "" {
		t.Fatalf("create: %v", created)
	}
	if got := e.Call(edgetest.FormKey, "POST", "", `{"email":"`+email+`"}`); got.Body != edgetest.Failed("The email is already taken.").Body {
		t.Errorf("create again: %v", got)
	}
	if got := e.Write(edgetest.FormKey, "PUT", "/"+email, `{"labels":["replaced"],"is_subscribed":false}`); !strings.Contains(got.Body, `"labels":["replaced"]`) || got.Header["Lychgate-Sync"] != "" {
		t.Errorf("update: %v", got)
	}
	// What Ghost refuses is undone, so what was read before is as it was.
	read := e.Call(edgetest.FormKey, "GET", "/"+email, "").Header["Etag"]
	if got := e.Call(edgetest.FormKey, "PUT", "/"+email, `{"newsletters":[{"id":"0123456789abcdef01234567"}]}`, "If-Match", read); got.Body != edgetest.Failed("One of the newsletters does not exist in Ghost.").Body {
		t.Errorf("an unknown newsletter: %v", got)
	}
	if got := e.Write(edgetest.FormKey, "PUT", "/"+email, `{"name":"Jane Doe"}`, "If-Match", read); got.Status != 200 || got.Header["Lychgate-Sync"] != "" {
		t.Errorf("after a refusal: %v", got)
	}
	// Another edge, which has never heard of her, reads what Ghost has.
	second := startSecond(t, e, url, key)
	if got := second.Call(edgetest.FormKey, "GET", "/"+email, ""); !strings.Contains(got.Body, `"labels":["replaced"]`) || !strings.Contains(got.Body, `"is_subscribed":false`) || !strings.Contains(got.Body, `"note":"from the CRM"`) {
		t.Errorf("read through: %v", got)
	}
	if got := second.Call(edgetest.FormKey, "POST", "", `{"email":"refused@example"}`); !strings.Contains(got.Body, `"success":false`) {
		t.Errorf("refused: %v", got)
	}
	dup := second.Write(edgetest.CRMKey, "POST", "", `{"email":"`+email+`","member_id":"`+unique+`"}`)
	if !strings.Contains(dup.Body, `"email":"`+unique+`@members.invalid"`) || dup.Header["Lychgate-Sync"] != "" {
		t.Errorf("a duplicate: %v", dup)
	}
	for _, got := range []edgetest.Response{second.Write(edgetest.CRMKey, "DELETE", "/"+unique, ""), second.Write(edgetest.FormKey, "DELETE", "/"+email, "")} {
		if got.Status != 200 || got.Header["Lychgate-Sync"] != "" {
			t.Errorf("delete: %v", got)
		}
	}
	if got := second.Call(edgetest.FormKey, "GET", "/"+email, ""); got.Status != 404 {
		t.Errorf("after delete: %v", got)
	}
	if e.AtOnce+second.AtOnce == 0 {
		t.Error("all writes were queued, want that Ghost has some at once")
	}
}

// startSecond replaces the running Caddy's store with an empty one.
func startSecond(t *testing.T, e *edgetest.Edge, url, key string) *edgetest.Edge {
	e.Load(edgetest.MembersConfig(edgetest.SQLiteStore(t), edgetest.GhostPlatform(url, key, "off")))
	return e
}

// What Ghost's staff do there is seen here, without anybody writing here: a
// label, a status and tier, and that a member was removed.
func TestEventsFromGhost(t *testing.T) {
	url, key := ghosttest.Real(t)
	client, err := ghost.New(ghost.Config{URL: url, AdminKey: key})
	if err != nil {
		t.Fatalf("ghost.New: %v", err)
	}
	defer client.Close()
	ctx := t.Context()
	source := edgetest.SQLiteStore(t)
	e := edgetest.StartEdge(t, nil, edgetest.MembersConfig(source, edgetest.GhostPlatform(url, key, "http://127.0.0.1:{{port}}")))
	store := edgetest.OpenStore(t, source)
	has := func(email string) bool { // without asking Ghost, as a read would
		_, err := store.Find(ctx, members.Key{Site: "daily", Email: email})
		return err == nil
	}
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	email, other := "changed+"+unique+"@example.com", "made+"+unique+"@example.com"
	read := func(email string) edgetest.Response { return e.Call(edgetest.FormKey, "GET", "/"+email, "") }

	wait.Until(t, func() string {
		if w, err := store.FindWebhook(ctx, "daily"); err != nil || w.RegisteredAt.IsZero() {
			return fmt.Sprint("Ghost was not asked to send events: ", err)
		}
		return ""
	})
	malformedEvents(t, e, store, key)
	created := e.Write(edgetest.FormKey, "POST", "", `{"email":"`+email+`","labels":["crm"]}`)
	if created.Header["Lychgate-Sync"] != "" {
		t.Fatalf("got %v, want no Lychgate-Sync", created)
	}
	found, err := client.FindByEmail(ctx, email)
	if err != nil {
		t.Fatalf("client.FindByEmail: %v", err)
	}
	labels := append(found.Labels, "from staff")
	if _, err := client.Update(ctx, found.ID, platform.Change{Labels: &labels}); err != nil {
		t.Fatalf("client.Update: %v", err)
	}
	var labelled edgetest.Response
	wait.Until(t, func() string {
		if labelled = read(email); !strings.Contains(labelled.Body, `"labels":["crm","from staff"]`) {
			return "the label is not here: " + labelled.Body
		}
		return ""
	})
	// A change of another field keeps it, and is no news.
	updated := e.Write(edgetest.FormKey, "PUT", "/"+email, `{"name":"Named"}`, "If-Match", labelled.Header["Etag"])
	if !strings.Contains(updated.Body, `"labels":["crm","from staff"]`) || updated.Header["Lychgate-Sync"] != "" {
		t.Errorf("got %v, want body with %s, no Lychgate-Sync", updated, `"labels":["crm","from staff"]`)
	}
	if found, err := client.FindByEmail(ctx, email); err != nil || found.Name != "Named" || len(found.Labels) != 2 {
		t.Errorf(`FindByEmail = %+v, %v, want no error, name "Named", 2 labels`, found, err)
	}

	made, err := client.Create(ctx, platform.Member{Email: other})
	if err != nil {
		t.Fatalf("client.Create: %v", err)
	}
	wait.Until(t, func() string {
		if !has(other) {
			return "the new member is not here"
		}
		return ""
	})
	for _, id := range []string{found.ID, made.ID} {
		if err := client.Delete(ctx, id); err != nil {
			t.Fatalf("client.Delete: %v", err)
		}
	}
	wait.Until(t, func() string {
		if got := read(email); got.Status != 404 {
			return "who was removed is still here: " + got.Body
		}
		if has(other) {
			return "who was removed is still here"
		}
		return ""
	})
	if got := read(email); got.Header["Etag"] != "" {
		t.Errorf("got %v, want no Etag", got)
	}
	for name, want := range map[string]edgetest.Response{
		"/webhooks/unknown": exchange.JSON(410, `{"success":false,"message":"No webhook events are wanted at this address.","code":"gone"}`),
		"/webhooks/":        exchange.JSON(410, `{"success":false,"message":"No webhook events are wanted at this address.","code":"gone"}`),
		"/webhooks":         exchange.JSON(401, `{"success":false,"message":"The integration key is missing or not valid. Send Authorization: Bearer and the key.","code":"unauthorized"}`, "Www-Authenticate", "Bearer"),
	} {
		got, err := e.SendBody("POST", "/integration"+name, "{}")
		if err != nil || got.Status != want.Status || got.Body != want.Body {
			t.Errorf("%s: got %v, %v, want no error, status %v, body %v", name, got, err, want.Status, want.Body)
		}
	}
}

// malformedEvents sends events that are signed as Ghost's and are none: they get 400, and the
// log is silent about them.
func malformedEvents(t *testing.T, e *edgetest.Edge, store *memberstore.SQL, key string) {
	t.Helper()
	webhook, err := store.FindWebhook(t.Context(), "daily")
	if err != nil {
		t.Fatalf("store.FindWebhook: %v", err)
	}
	_, secret, _ := strings.Cut(key, ":")
	adminKey, err := hex.DecodeString(secret)
	if err != nil {
		t.Fatalf("hex.DecodeString: %v", err)
	}
	sign := func(key []byte, text string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return hex.EncodeToString(mac.Sum(nil))
	}
	quiet := e.Logged()
	want := exchange.JSON(400, `{"success":false,"message":"The webhook event is not as the platform sends them: it must be JSON about a member."}`)
	for _, body := range []string{"jane@example.com", "[]", `{"member":{"current":{"id":7}}}`, `{"post":{}}`} {
		sent := strconv.FormatInt(time.Now().UnixMilli(), 10)
		signature := "sha256=" + sign([]byte(sign(adminKey, "lychgate webhook "+webhook.URL)), body+sent) + ", t=" + sent
		_, path, _ := strings.Cut(webhook.URL, "/integration")
		got, err := e.SendBody("POST", "/integration"+path, body, "X-Ghost-Signature", signature)
		if err != nil {
			t.Fatalf("e.sendBody: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: response (-want +got):\n%s", body, diff)
		}
	}
	if added := strings.TrimPrefix(e.Logged(), quiet); strings.Contains(added, `"level":"error"`) || strings.Contains(added, "jane@") {
		t.Errorf("the log has %s", added)
	}
}
