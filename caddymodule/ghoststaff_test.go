package caddymodule_test

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
	_ "modernc.org/sqlite" // Ghost's database

	"github.com/lychgate/caddy-lychgate/internal/test/ghosttest"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// The owner that e2e/ghost/start makes. All of the staff have this password.
const (
	ghostOwner    = "owner@example.com"
	ghostPassword = "four-words-on-a-lychgate"
)

// signIn signs one of Ghost's staff in through the edge, and returns the cookie.
// From then on the edge is asked by the address that Ghost is configured with, as
// by a browser: Ghost 6 takes staff's requests from no other origin.
func (e *edge) signIn(email string) string {
	e.t.Helper()
	var about struct{ Site struct{ URL string } }
	if err := json.Unmarshal([]byte(e.do("GET", "/ghost/api/admin/site/").Body), &about); err != nil {
		e.t.Fatalf("json.Unmarshal: %v", err)
	}
	e.base = strings.TrimSuffix(about.Site.URL, "/")
	return e.signInAt(e.base, email)
}

// signInAt does so at an origin. Ghost 6 takes none but its own.
func (e *edge) signInAt(origin, email string) string {
	e.t.Helper()
	response, err := e.sendBody("POST", "/ghost/api/admin/session/", `{"username":"`+email+`","password":"`+ghostPassword+`"}`,
		"Content-Type", "application/json", "Origin", origin)
	if err != nil || response.Status != http.StatusCreated {
		e.t.Fatalf("signing in: %v, %v", response, err)
	}
	cookie, _, _ := strings.Cut(response.Header["Set-Cookie"], ";")
	wait.Until(e.t, func() string { // Ghost keeps a session a moment after it has said so
		if me := e.do("GET", "/ghost/api/admin/users/me/", "Cookie", cookie, "Origin", origin); me.Status != http.StatusOK {
			return fmt.Sprint("not signed in: ", me)
		}
		return ""
	})
	return cookie
}

// addStaff makes one of Ghost's staff with a role: invites them, takes the token
// that they would get by mail out of Ghost's database, and accepts.
func (e *edge) addStaff(owner, email, role string) {
	e.t.Helper()
	send := func(method, target, body string) string { return e.askGhost(owner, method, target, body) }
	var id string
	for object := range strings.SplitSeq(send("GET", "/roles/?limit=all", ""), "{") {
		if strings.Contains(object, `"name":"`+role+`"`) {
			_, rest, _ := strings.Cut(object, `"id":"`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	send("POST", "/invites/", fmt.Sprintf(`{"invites":[{"email":%q,"role_id":%q}]}`, email, id))
	token := queryGhost(e.t, `SELECT token FROM invites WHERE email = '`+email+`'`)
	send("POST", "/authentication/invitation/", fmt.Sprintf(`{"invitation":[{"token":%q,"email":%q,"name":%q,"password":%q}]}`,
		token, email, role, ghostPassword))
}

// askGhost asks Ghost's own API with the cookies of one of the staff, and fails the test
// unless it does what is asked.
func (e *edge) askGhost(cookies, method, target, body string) string {
	e.t.Helper()
	status, text := ghosttest.Settled(func() (int, string) {
		response, err := e.sendBody(method, "/ghost/api/admin"+target, body, "Content-Type", "application/json", "Origin", e.base, "Cookie", cookies)
		if err != nil {
			e.t.Fatalf("%s %s: %v", method, target, err)
		}
		return response.Status, response.Body
	})
	if status >= 300 {
		e.t.Fatalf("%s %s: got status %d, %s, want less than 300", method, target, status, text)
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

const uploadPath = "/ghost/api/admin/themes/upload/"

// upload sends a theme's zip to the edge as Ghost's admin does, to a path
// of the Admin API. Headers are name and value in turn.
func (e *edge) upload(path, fileName string, zip io.Reader, header ...string) (response, error) {
	const boundary = "the-boundary"
	body := io.MultiReader(
		strings.NewReader("--"+boundary+"\r\nContent-Disposition: form-data; name=\"file\"; filename=\""+fileName+"\"\r\nContent-Type: application/zip\r\n\r\n"),
		zip, strings.NewReader("\r\n--"+boundary+"--\r\n"))
	header = append([]string{"Content-Type", "multipart/form-data; boundary=" + boundary, "Origin", e.base}, header...)
	return e.sendStream("POST", path, body, header...)
}

// uploadTheme uploads a theme and fails the test unless Ghost takes it.
func (e *edge) uploadTheme(theme string, zip []byte, header ...string) response {
	e.t.Helper()
	before := time.Now()
	got, err := e.upload(uploadPath, theme+".zip", strings.NewReader(string(zip)), header...)
	if err != nil || got.Status != http.StatusOK {
		e.t.Fatalf("uploading %s after %s: %v, %v", theme, time.Since(before), got, err)
	}
	return got
}

// An integration makes such a JWT of its key for each request to Ghost's Admin API.
func adminToken(t testing.TB, key string) string {
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

// guidLike is different in each call, since tests share a Ghost.
func guidLike() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }
