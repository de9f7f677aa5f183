package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lychgate/caddy-lychgate/internal/test/freeport"
	"github.com/lychgate/caddy-lychgate/internal/test/wait"
)

// webKit is driven through WebDriver, https://www.w3.org/TR/webdriver2/. It has
// one window for all pages, one after the other.
type webKit struct {
	screen, driver *exec.Cmd
	session        string // its URL
	framed         bool   // the page is in a frame
}

func startWebKit(folder string) (Engine, error) {
	browsers, err := filepath.Glob("/usr/lib/*/webkit2gtk-4.1/MiniBrowser")
	if err != nil {
		return nil, err
	}
	for _, program := range []string{"WebKitWebDriver", "Xvfb"} {
		if _, err := exec.LookPath(program); err != nil || len(browsers) == 0 {
			return nil, NotInstalled("WebKit, of Debian's packages webkit2gtk-driver and xvfb")
		}
	}
	w := new(webKit)
	if err := w.start(browsers[0], folder); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

func (w *webKit) start(program, folder string) error {
	display, err := w.startScreen()
	if err != nil {
		return fmt.Errorf("starting Xvfb: %w", err)
	}
	port, err := freeport.Find()
	if err != nil {
		return err
	}
	w.driver = exec.Command("WebKitWebDriver", "--port="+port)
	w.driver.Env = append(os.Environ(), "DISPLAY=:"+display, "XDG_CACHE_HOME="+folder, "XDG_CONFIG_HOME="+folder, "XDG_DATA_HOME="+folder)
	w.driver.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := w.driver.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // more than Poll waits
	defer cancel()
	root := "http://127.0.0.1:" + port
	w.session = root
	err = wait.Poll(func() string {
		if err := w.call(ctx, http.MethodGet, "/status", nil, nil); err != nil {
			return "the driver does not listen: " + err.Error()
		}
		return ""
	})
	if err != nil {
		return err
	}
	var session struct{ SessionID string }
	err = w.call(ctx, http.MethodPost, "/session", object{"capabilities": object{"alwaysMatch": object{
		"webkitgtk:browserOptions": object{"binary": program, "args": []string{"--automation"}},
		"timeouts":                 object{"script": (5 * time.Minute).Milliseconds()},
	}}}, &session)
	w.session = root + "/session/" + session.SessionID
	return err
}

// startScreen starts a screen that nobody sees, and returns its number.
func (w *webKit) startScreen() (display string, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer out.Close()
	w.screen = exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1600x1200x24", "-nolisten", "tcp")
	w.screen.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	w.screen.ExtraFiles = []*os.File{in}
	err = w.screen.Start()
	in.Close()
	if err != nil {
		return "", err
	}
	_, err = fmt.Fscan(out, &display)
	return display, err
}

// call sends a command to the session.
func (w *webKit) call(ctx context.Context, method, path string, params, result any) error {
	var body bytes.Buffer
	if method == http.MethodPost {
		if err := json.NewEncoder(&body).Encode(params); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, w.session+path, &body)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var reply struct{ Value json.RawMessage }
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		var failure struct{ Error, Message string }
		if err := json.Unmarshal(reply.Value, &failure); err != nil {
			return err
		}
		return fmt.Errorf("%s: %s: %s", path, failure.Error, failure.Message)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(reply.Value, result)
}

func (w *webKit) Stop() {
	if w.driver != nil && w.driver.Process != nil {
		syscall.Kill(-w.driver.Process.Pid, syscall.SIGKILL) // with the browser, which it has started
		w.driver.Wait()
	}
	if w.screen != nil && w.screen.Process != nil {
		w.screen.Process.Signal(os.Interrupt)
		w.screen.Wait()
	}
}

func (w *webKit) Open(ctx context.Context, address string, how Look) (Tab, error) {
	if w.framed {
		if err := w.call(ctx, http.MethodPost, "/frame", object{"id": nil}, nil); err != nil {
			return nil, err
		}
		w.framed = false
	}
	t := &webKitTab{w, ctx, ""}
	if how.Width > 0 && how.Width < narrowest {
		if err := seenAnyway(how.Media); err != nil {
			return nil, err
		}
		return t, t.openFrame(address, how.Width, how.Height)
	}
	if how.Width == 0 {
		how.Width, how.Height = 1024, 768
	}
	if err := t.Show(how); err != nil {
		return nil, err
	}
	return t, t.Navigate(address)
}

// narrowest is how narrow a window can be. A phone is narrower.
const narrowest = 500

// seenAnyway fails where a test needs other media than WebKit's driver can set.
func seenAnyway(media map[string]string) error {
	for feature, value := range media {
		if feature+value != "prefers-color-schemelight" {
			return Unable("WebKit's driver sets no " + feature + ": " + value)
		}
	}
	return nil
}

type webKitTab struct {
	*webKit

	ctx   context.Context
	frame string // the element that the page is in, if it is in a frame
}

// openFrame opens a page in a frame. Only if the page around it has the same
// origin does what is typed go to the frame, so this is the page that says that
// there is no icon.
func (t *webKitTab) openFrame(address string, width, height int64) error {
	around, err := url.Parse(address)
	if err != nil {
		return err
	}
	around.Path = "/favicon.ico"
	if err := t.resize(1024, height); err != nil {
		return err
	}
	if err := t.call(t.ctx, http.MethodPost, "/url", object{"url": around.String()}, nil); err != nil {
		return err
	}
	var frame map[string]string
	err = t.call(t.ctx, http.MethodPost, "/execute/sync", object{"script": `
		const [src, width, height] = arguments;
		const frame = Object.assign(document.createElement('iframe'), {src, width, height, style: 'display: block; border: 0'});
		document.body.style.margin = 0;
		document.body.replaceChildren(frame);
		return new Promise(done => frame.addEventListener('load', () => { frame.focus(); done(frame); }));
	`, "args": []any{address, width, height}}, &frame)
	if err != nil {
		return err
	}
	t.frame, t.framed = frame[elementKey], true
	return t.call(t.ctx, http.MethodPost, "/frame", object{"id": frame}, nil)
}

// resize makes the window as large as a page of this size needs.
func (t *webKitTab) resize(width, height int64) error {
	text, err := t.Evaluate("`${outerWidth - innerWidth} ${outerHeight - innerHeight} ${innerWidth} ${innerHeight}`")
	if err != nil {
		return err
	}
	var moreWidth, moreHeight, oldWidth, oldHeight int64
	if _, err := fmt.Sscan(text, &moreWidth, &moreHeight, &oldWidth, &oldHeight); err != nil {
		return err
	}
	if oldWidth == width && oldHeight == height {
		return nil
	}
	return t.call(t.ctx, http.MethodPost, "/window/rect", object{"x": 0, "y": 0, "width": width + moreWidth, "height": height + moreHeight}, nil)
}

// elementKey is the name of an element's identifier, in each WebDriver.
const elementKey = "element-6066-11e4-a52e-4f735466cecf"

func (t *webKitTab) Show(how Look) error {
	if err := seenAnyway(how.Media); err != nil || how.Width == 0 {
		return err
	}
	if how.Width < narrowest || t.frame != "" {
		return Unable("WebKit's window cannot become as narrow as a phone")
	}
	return t.resize(how.Width, how.Height)
}

func (t *webKitTab) Navigate(address string) error {
	return t.call(t.ctx, http.MethodPost, "/url", object{"url": address}, nil)
}

// Problems are always none: WebKit's driver does not tell of any.
func (t *webKitTab) Problems() ([]string, error) { return nil, nil }

// Close leaves the window to the next page.
func (t *webKitTab) Close() {}

// scriptTime is how long a response of a script is waited for. WebKit never answers
// a script whose page it has put into its cache of pages meanwhile, not even that
// the script's time is up.
const scriptTime = 30 * time.Second

func (t *webKitTab) Evaluate(expression string) (result string, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, scriptTime)
	defer cancel()
	err = t.call(ctx, http.MethodPost, "/execute/sync", object{"script": "return " + strings.TrimSpace(expression), "args": []any{}}, &result)
	return result, err
}

func (t *webKitTab) Press(keys string) error {
	return t.call(t.ctx, http.MethodPost, "/actions", object{"actions": keyActions(keys)}, nil)
}

func (t *webKitTab) Drag(from, to image.Point) error {
	if t.frame != "" {
		return Unable("WebKit's driver moves the mouse in the window, not in a frame")
	}
	return t.call(t.ctx, http.MethodPost, "/actions", object{"actions": dragActions(from, to)}, nil)
}

func (t *webKitTab) Tap(image.Point) error {
	return Unable("WebKit's driver has no finger")
}

func (t *webKitTab) Screenshot() (picture []byte, err error) {
	path := "/screenshot"
	if t.frame != "" {
		if err := t.call(t.ctx, http.MethodPost, "/frame", object{"id": nil}, nil); err != nil {
			return nil, err
		}
		path = "/element/" + t.frame + path
	}
	if err := t.call(t.ctx, http.MethodGet, path, nil, &picture); err != nil || t.frame == "" {
		return picture, err
	}
	return picture, t.call(t.ctx, http.MethodPost, "/frame", object{"id": object{elementKey: t.frame}}, nil)
}

func (t *webKitTab) Offline() error {
	return Unable("WebKit's driver cannot take a page off the network")
}
