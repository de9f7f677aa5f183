package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// firefox is driven through WebDriver BiDi, https://w3c.github.io/webdriver-bidi/.
type firefox struct {
	process *exec.Cmd
	conn    *websocket.Conn
	calls   int
	chrome  string              // the browsing context of the browser's own window
	errors  map[string][]string // what the console has shown in red, by browsing context
}

// firefoxSettings have one process for all pages, which halves the CPU time of the button's tests.
const firefoxSettings = `user_pref("fission.autostart", false);
user_pref("dom.ipc.processCount", 1);
user_pref("dom.ipc.keepProcessesAlive.web", 1);
`

func startFirefox(folder string) (Engine, error) {
	program, err := exec.LookPath("firefox-esr")
	if err != nil {
		program, err = exec.LookPath("firefox")
	}
	if err != nil {
		return nil, NotInstalled("Firefox in the PATH")
	}
	profile := filepath.Join(folder, "profile")
	if err := os.Mkdir(profile, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(firefoxSettings), 0o600); err != nil {
		return nil, err
	}
	f := &firefox{errors: make(map[string][]string), process: exec.Command(program, "--headless", "--no-remote", "--profile", profile,
		"--remote-debugging-port", "0", "--remote-allow-system-access")}
	f.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	log, err := f.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := f.process.Start(); err != nil {
		return nil, err
	}
	if err := f.connect(log); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

func (f *firefox) connect(log io.Reader) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, f.kill)()
	address := ""
	for lines := bufio.NewScanner(log); address == ""; {
		if !lines.Scan() {
			return errors.New("ended, or did not say within a minute where it listens")
		}
		_, address, _ = strings.Cut(lines.Text(), "WebDriver BiDi listening on ")
	}
	go io.Copy(io.Discard, log) // else it would block
	var err error
	f.conn, _, err = websocket.Dial(ctx, address+"/session", nil)
	if err != nil {
		return err
	}
	f.conn.SetReadLimit(-1) // for pictures
	if err := f.call(ctx, "session.new", object{"capabilities": object{}}, nil); err != nil {
		return err
	}
	var tree struct{ Contexts []struct{ Context string } }
	if err := f.call(ctx, "browsingContext.getTree", object{"moz:scope": "chrome"}, &tree); err != nil {
		return err
	}
	f.chrome = tree.Contexts[0].Context
	if err := f.call(ctx, "session.subscribe", object{"events": []string{"log.entryAdded"}}, nil); err != nil {
		return err
	}
	// The log has no violations of a Content-Security-Policy.
	return f.call(ctx, "script.addPreloadScript", object{"functionDeclaration": `() => addEventListener('securitypolicyviolation',
		event => console.error('Content-Security-Policy', event.violatedDirective, event.blockedURI))`}, nil)
}

// object is one of JSON.
type object = map[string]any

// call is for one goroutine.
func (f *firefox) call(ctx context.Context, method string, params, result any) error {
	f.calls++
	if err := wsjson.Write(ctx, f.conn, object{"id": f.calls, "method": method, "params": params}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	for {
		var reply struct {
			ID      int
			Result  json.RawMessage
			Error   string
			Message string
			Method  string // of an event
			Params  struct {
				Level, Text string
				Source      struct{ Context string }
			}
		}
		if err := wsjson.Read(ctx, f.conn, &reply); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		switch {
		case reply.Method == "log.entryAdded" && reply.Params.Level == "error":
			where := reply.Params.Source.Context
			f.errors[where] = append(f.errors[where], reply.Params.Text)
		case reply.ID != f.calls:
		case reply.Error != "":
			return fmt.Errorf("%s: %s: %s", method, reply.Error, reply.Message)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(reply.Result, result)
		}
	}
}

// evaluateIn runs an expression in a browsing context.
func (f *firefox) evaluateIn(ctx context.Context, where, expression string) (string, error) {
	var result struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Text string }
	}
	err := f.call(ctx, "script.evaluate", object{
		"expression": expression, "target": object{"context": where}, "awaitPromise": true,
	}, &result)
	if err == nil && result.ExceptionDetails != nil {
		err = errors.New(result.ExceptionDetails.Text)
	}
	return result.Result.Value, err
}

func (f *firefox) kill() { syscall.Kill(-f.process.Process.Pid, syscall.SIGKILL) }

func (f *firefox) Stop() {
	f.kill() // with the processes that it has started
	if f.conn != nil {
		f.conn.CloseNow()
	}
	f.process.Wait()
}

// firefoxMedia are the settings behind media features. BiDi has no command for
// these, but they take effect in pages that are open.
var firefoxMedia = map[string]object{
	"prefers-color-scheme":   {"light": "layout.css.prefers-color-scheme.content-override=1", "dark": "layout.css.prefers-color-scheme.content-override=0"},
	"prefers-reduced-motion": {"reduce": "ui.prefersReducedMotion=1"},
	"forced-colors":          {"active": "browser.display.document_color_use=2"},
}

func (f *firefox) setMedia(ctx context.Context, media map[string]string) error {
	var script strings.Builder
	for feature := range media {
		if firefoxMedia[feature] == nil {
			return Unable("Firefox has no setting for the media feature " + feature)
		}
	}
	for feature, values := range firefoxMedia {
		for _, setting := range values {
			name, _, _ := strings.Cut(setting.(string), "=")
			fmt.Fprintf(&script, "Services.prefs.clearUserPref(%q);", name)
		}
		if value, ok := media[feature]; ok {
			setting, ok := values[value].(string)
			if !ok {
				return Unable("Firefox has no setting for " + feature + ": " + value)
			}
			name, number, _ := strings.Cut(setting, "=")
			fmt.Fprintf(&script, "Services.prefs.setIntPref(%q, %s);", name, number)
		}
	}
	_, err := f.evaluateIn(ctx, f.chrome, script.String()+"''")
	return err
}

func (f *firefox) Open(ctx context.Context, url string, how Look) (Tab, error) {
	t := &firefoxTab{firefox: f, ctx: ctx}
	var user struct{ UserContext string }
	if err := f.call(ctx, "browser.createUserContext", object{}, &user); err != nil {
		return nil, err
	}
	t.user = user.UserContext
	var created struct{ Context string }
	if err := f.call(ctx, "browsingContext.create", object{"type": "tab", "userContext": t.user}, &created); err != nil {
		return nil, err
	}
	t.context = created.Context
	if err := t.Show(how); err != nil {
		return nil, err
	}
	return t, t.Navigate(url)
}

type firefoxTab struct {
	*firefox

	ctx           context.Context
	context, user string
}

func (t *firefoxTab) Show(how Look) error {
	if err := t.setMedia(t.ctx, how.Media); err != nil || how.Width == 0 {
		return err
	}
	return t.call(t.ctx, "browsingContext.setViewport", object{
		"context": t.context, "viewport": object{"width": how.Width, "height": how.Height}, "devicePixelRatio": 2,
	}, nil)
}

func (t *firefoxTab) Navigate(url string) error {
	return t.call(t.ctx, "browsingContext.navigate", object{"context": t.context, "url": url, "wait": "complete"}, nil)
}

func (t *firefoxTab) Problems() ([]string, error) {
	// All that the page has caused is heard before the response to a command.
	_, err := t.Evaluate("''")
	return slices.Clone(t.errors[t.context]), err
}

func (t *firefoxTab) Close() {
	delete(t.errors, t.context)
	t.call(context.WithoutCancel(t.ctx), "browser.removeUserContext", object{"userContext": t.user}, nil)
}

func (t *firefoxTab) Evaluate(expression string) (string, error) {
	return t.evaluateIn(t.ctx, t.context, expression)
}

func (t *firefoxTab) Press(keys string) error {
	return t.call(t.ctx, "input.performActions", object{"context": t.context, "actions": keyActions(keys)}, nil)
}

// keyActions presses keys one by one, as both WebDriver and BiDi understand it.
func keyActions(keys string) []object {
	var strokes []object
	for _, key := range strings.NewReplacer("\t", "\ue004", "\r", "\ue007").Replace(keys) {
		strokes = append(strokes, object{"type": "keyDown", "value": string(key)}, object{"type": "keyUp", "value": string(key)})
	}
	return []object{{"type": "key", "id": "keyboard", "actions": strokes}}
}

func (t *firefoxTab) Drag(from, to image.Point) error {
	return t.call(t.ctx, "input.performActions", object{"context": t.context, "actions": dragActions(from, to)}, nil)
}

// dragActions drags with the mouse, as both WebDriver and BiDi understand it.
func dragActions(from, to image.Point) []object {
	move := func(at image.Point) object {
		return object{"type": "pointerMove", "x": at.X, "y": at.Y, "duration": 50}
	}
	steps := []object{move(from), {"type": "pointerDown", "button": 0}, move(from.Add(to).Div(2)), move(to), {"type": "pointerUp", "button": 0}}
	return []object{{"type": "pointer", "id": "mouse", "parameters": object{"pointerType": "mouse"}, "actions": steps}}
}

func (t *firefoxTab) Tap(at image.Point) error {
	steps := []object{{"type": "pointerMove", "x": at.X, "y": at.Y}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}}
	return t.call(t.ctx, "input.performActions", object{"context": t.context, "actions": []object{
		{"type": "pointer", "id": "finger", "parameters": object{"pointerType": "touch"}, "actions": steps},
	}}, nil)
}

func (t *firefoxTab) Screenshot() ([]byte, error) {
	var shot struct{ Data []byte }
	err := t.call(t.ctx, "browsingContext.captureScreenshot", object{"context": t.context}, &shot)
	return shot.Data, err
}

func (t *firefoxTab) Offline() error {
	return t.call(t.ctx, "emulation.setNetworkConditions", object{
		"contexts": []string{t.context}, "networkConditions": object{"type": "offline"},
	}, nil)
}
