package edgetest

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	_ "modernc.org/sqlite"

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The owner that e2e/ghost/start makes. All of the staff have this password.
const (
	GhostOwner    = "owner@example.com"
	GhostPassword = "four-words-on-a-lychgate"
)

// SignIn signs one of Ghost's staff in through the edge, and returns the cookie.
// From then on the edge is asked by the address that Ghost is configured with, as
// by a browser: Ghost 6 takes staff's requests from no other origin.
func (e *Edge) SignIn(email string) string {
	e.T.Helper()
	var about struct{ Site struct{ URL string } }
	if err := json.Unmarshal([]byte(e.Do("GET", "/ghost/api/admin/site/").Body), &about); err != nil {
		e.T.Fatalf("json.Unmarshal: %v", err)
	}
	e.Base = strings.TrimSuffix(about.Site.URL, "/")
	return e.SignInAt(e.Base, email)
}

// SignInAt does so at an origin. Ghost 6 takes none but its own.
func (e *Edge) SignInAt(origin, email string) string {
	e.T.Helper()
	response, err := e.SendBody("POST", "/ghost/api/admin/session/", `{"username":"`+email+`","password":"`+GhostPassword+`"}`,
		"Content-Type", "application/json", "Origin", origin)
	if err != nil || response.Status != http.StatusCreated {
		e.T.Fatalf("signing in: %v, %v", response, err)
	}
	cookie, _, _ := strings.Cut(response.Header["Set-Cookie"], ";")
	wait.Until(e.T, func() string { // Ghost keeps a session a moment after it has said so
		if me := e.Do("GET", "/ghost/api/admin/users/me/", "Cookie", cookie, "Origin", origin); me.Status != http.StatusOK {
			return fmt.Sprint("not signed in: ", me)
		}
		return ""
	})
	return cookie
}

// AddStaff makes one of Ghost's staff with a role: invites them, takes the token
// that they would get by mail out of Ghost's database, and accepts.
func (e *Edge) AddStaff(owner, email, role string) {
	e.T.Helper()
	send := func(method, target, body string) string { return e.askGhost(owner, method, target, body) }
	var id string
	for object := range strings.SplitSeq(send("GET", "/roles/?limit=all", ""), "{") {
		if strings.Contains(object, `"name":"`+role+`"`) {
			_, rest, _ := strings.Cut(object, `"id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	send("POST", "/invites/", fmt.Sprintf(`{"invites":[{"email":%q,"role_id":%q}]}`, email, id))
	token := queryGhost(e.T, `SELECT token FROM invites WHERE email = '`+email+`'`)
	send("POST", "/authentication/invitation/", fmt.Sprintf(`{"invitation":[{"token":%q,"email":%q,"name":%q,"password":%q}]}`,
		token, email, role, GhostPassword))
}

// askGhost asks Ghost's own API with the cookies of one of the staff, and fails the test
// unless it does what is asked.
func (e *Edge) askGhost(cookies, method, target, body string) string {
	e.T.Helper()
	ask := func() (int, string) {
		response, err := e.SendBody(method, "/ghost/api/admin"+target, body, "Content-Type", "application/json", "Origin", e.Base, "Cookie", cookies)
		if err != nil {
			e.T.Fatalf("%s %s: %v", method, target, err)
		}
		return response.Status, response.Body
	}
	status, text := ghosttest.Settled(ask)
	// After a fault Caddy may take a connection that was closed a moment ago, and sends nothing anew but what it may send twice.
	for tries := 0; status == http.StatusBadGateway && method != http.MethodPost && tries < 10; tries++ {
		status, text = ghosttest.Settled(ask)
	}
	if status >= 300 {
		e.T.Fatalf("%s %s: got status %d, %s, want less than 300", method, target, status, text)
	}
	return text
}

// queryGhost reads one value from the real Ghost's database. The query must be valid on SQLite and
// MariaDB.
func queryGhost(t testing.TB, query string) string {
	t.Helper()
	var config struct {
		Database struct {
			Client     string
			Connection struct {
				Filename, Host, User, Database string
				Port                           int
			}
		}
	}
	text, err := os.ReadFile(ghosttest.Folder(t) + "/config.production.json")
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatalf("os.ReadFile: %v", err)
	}
	connection := config.Database.Connection
	if config.Database.Client != "mysql" {
		return querySQLite(t, connection.Filename, query)
	}
	client := exec.CommandContext(t.Context(), "mariadb", "--no-defaults", "--protocol=tcp", "--host="+connection.Host,
		"--port="+strconv.Itoa(connection.Port), "--user="+connection.User, "--batch", "--skip-column-names",
		"--execute="+query, connection.Database)
	client.Stderr = os.Stderr
	output, err := client.Output()
	if err != nil {
		t.Fatalf("client.Output: %v", err)
	}
	return strings.TrimSuffix(string(output), "\n")
}

func querySQLite(t testing.TB, file, query string) (value string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatalf("sql.Open: %v", err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("db.QueryRowContext(t.Context(), query).Scan: %v", err)
	}
	return value
}

// UploadPath is where Ghost takes themes.
const UploadPath = "/ghost/api/admin/themes/upload/"

// Upload sends a theme's zip to the edge as Ghost's admin does, to a path
// of the Admin API. Headers are name and value in turn.
func (e *Edge) Upload(path, fileName string, zip io.Reader, header ...string) (Response, error) {
	const boundary = "the-boundary"
	body := io.MultiReader(
		strings.NewReader("--"+boundary+"\r\nContent-Disposition: form-data; name=\"file\"; filename=\""+fileName+"\"\r\nContent-Type: application/zip\r\n\r\n"),
		zip, strings.NewReader("\r\n--"+boundary+"--\r\n"))
	header = append([]string{"Content-Type", "multipart/form-data; boundary=" + boundary, "Origin", e.Base}, header...)
	return e.sendStream("POST", path, body, header...)
}

// UploadTheme uploads a theme and fails the test unless Ghost takes it.
func (e *Edge) UploadTheme(theme string, zip []byte, header ...string) Response {
	e.T.Helper()
	before := time.Now()
	got, err := e.Upload(UploadPath, theme+".zip", strings.NewReader(string(zip)), header...)
	if err != nil || got.Status != http.StatusOK {
		e.T.Fatalf("uploading %s after %s: %v, %v", theme, time.Since(before), got, err)
	}
	return got
}

// AdminToken makes the JWT of an integration's key that a request to Ghost's Admin API carries.
func AdminToken(t testing.TB, key string) string {
	t.Helper()
	id, secret, _ := strings.Cut(key, ":")
	plain, err := hex.DecodeString(secret)
	if err != nil {
		t.Fatalf("hex.DecodeString: %v", err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: plain}, new(jose.SignerOptions).WithHeader("kid", id))
	if err != nil {
		t.Fatalf("jose.NewSigner: %v", err)
	}
	now := time.Now()
	token, err := jwt.Signed(signer).Claims(jwt.Claims{
		Audience: jwt.Audience{"/admin/"}, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Minute)),
	}).Serialize()
	if err != nil {
		t.Fatalf("jwt.Signed(signer).Claims(jwt.Claims{ Audience: jwt.…: %v", err)
	}
	return token
}

// GUIDLike is different in each call, since tests share a Ghost.
func GUIDLike() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }
