package browser

import (
	"cmp"
	"context"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chromium is driven through the Chrome DevTools Protocol.
type chromium struct {
	window context.Context
	cancel func()
}

func startChromium(folder string) (Engine, error) {
	program := ""
	// The shell is Chromium without what draws windows. The tests of the button take a quarter of the CPU time with it.
	for _, name := range []string{os.Getenv("LYCHGATE_TEST_CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, NotInstalled("Chromium in the PATH, or in LYCHGATE_TEST_CHROMIUM")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.NoSandbox, // which root cannot have
		chromedp.Flag("headless", "new"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1"), // Ghost Admin asks others too
		chromedp.UserDataDir(filepath.Join(folder, "profile")),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	window, stopBrowser := chromedp.NewContext(allocator)
	c := &chromium{window, func() { stopBrowser(); stopAllocator() }}
	if err := chromedp.Do(window); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *chromium) Stop() { c.cancel() }

func (c *chromium) Open(ctx context.Context, url string, how Look) (Tab, error) {
	own, cancel := chromedp.NewContext(c.window, chromedp.WithNewBrowserContext())
	context.AfterFunc(ctx, cancel)
	t := &chromiumTab{ctx: own, cancel: cancel}
	if err := chromedp.Listen(own, t.listen); err != nil {
		return nil, err
	}
	if err := t.Show(how); err != nil {
		return nil, err
	}
	return t, t.Navigate(url)
}

type chromiumTab struct {
	ctx    context.Context
	cancel func()

	mu       sync.Mutex
	problems []string
}

// listen keeps what the console shows in red.
func (t *chromiumTab) listen(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch event := event.(type) {
	case *page.EventJavascriptDialogOpening: // as Firefox and WebKit do by themselves when a page is left
		go func() {
			_, _ = chromedp.Call(t.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}) // it may be gone
		}()
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError {
			t.problems = append(t.problems, strings.TrimSpace(event.Entry.Text+" "+event.Entry.URL))
		}
	case *runtime.EventExceptionThrown:
		text := event.ExceptionDetails.Text
		if event.ExceptionDetails.Exception != nil {
			text += " " + event.ExceptionDetails.Exception.Description
		}
		t.problems = append(t.problems, text)
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError {
			text := []string{"console.error"}
			for _, arg := range event.Args {
				text = append(text, cmp.Or(arg.Description, string(arg.Value)))
			}
			t.problems = append(t.problems, strings.Join(text, " "))
		}
	}
}

func (t *chromiumTab) Problems() ([]string, error) {
	// All that the page has caused is heard before the response to a command.
	if _, err := t.Evaluate("''"); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems), nil
}

func (t *chromiumTab) Show(how Look) error {
	if how.Width > 0 {
		_, err := chromedp.Call(t.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: how.Width, Height: how.Height, DeviceScaleFactor: 2, Mobile: how.Phone,
		})
		if err != nil {
			return err
		}
	}
	var features []*emulation.MediaFeature
	for name, value := range how.Media {
		if name == "type" {
			continue
		}
		features = append(features, &emulation.MediaFeature{Name: name, Value: value})
	}
	_, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: how.Media["type"], Features: features})
	return err
}

func (t *chromiumTab) Navigate(url string) error {
	return chromedp.Do(t.ctx, chromedp.Navigate(url))
}

func (t *chromiumTab) Close() { t.cancel() }

func (t *chromiumTab) Evaluate(expression string) (string, error) {
	return chromedp.Run(t.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
}

func (t *chromiumTab) Press(keys string) error {
	return chromedp.Do(t.ctx, chromedp.KeyEvent(strings.NewReplacer(ArrowRight, kb.ArrowRight, ArrowDown, kb.ArrowDown).Replace(keys)))
}

func (t *chromiumTab) Drag(from, to image.Point) error {
	return chromedp.Do(t.ctx, chromedp.DragAndDropXY(float64(from.X), float64(from.Y), float64(to.X), float64(to.Y)))
}

func (t *chromiumTab) Tap(at image.Point) error {
	if _, err := chromedp.Call(t.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}); err != nil {
		return err
	}
	down := input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchStart, TouchPoints: []*input.TouchPoint{{X: float64(at.X), Y: float64(at.Y)}}}
	up := input.DispatchTouchEventParams{Type: input.DispatchTouchEventTypeTouchEnd, TouchPoints: []*input.TouchPoint{}}
	for _, event := range []input.DispatchTouchEventParams{down, up} {
		if _, err := chromedp.Call(t.ctx, input.DispatchTouchEvent, event); err != nil {
			return err
		}
	}
	return nil
}

func (t *chromiumTab) Screenshot() ([]byte, error) {
	result, err := chromedp.Call(t.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	if err != nil {
		return nil, err
	}
	return result.Data, nil
}

func (t *chromiumTab) Offline() error {
	_, err := chromedp.Call(t.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}},
	})
	return err
}
