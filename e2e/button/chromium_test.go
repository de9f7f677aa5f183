package button

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// chromium is driven through the Chrome DevTools Protocol.
type chromium struct {
	window context.Context
	cancel func()
}

func startChromium(folder string) (engine, error) {
	program := ""
	for _, name := range []string{os.Getenv("LYCHGATE_TEST_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, notInstalled("Chromium in the PATH, or in LYCHGATE_TEST_CHROMIUM")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program),
		chromedp.NoSandbox, // which root cannot have
		chromedp.Flag("headless", "new"),
		chromedp.UserDataDir(filepath.Join(folder, "profile")),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	window, stopBrowser := chromedp.NewContext(allocator)
	c := &chromium{window, func() { stopBrowser(); stopAllocator() }}
	if err := chromedp.Do(window); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *chromium) stop() { c.cancel() }

func (c *chromium) open(ctx context.Context, url string, how look) (tab, error) {
	own, cancel := chromedp.NewContext(c.window, chromedp.WithNewBrowserContext())
	context.AfterFunc(ctx, cancel)
	t := &chromiumTab{own, cancel}
	if how.width > 0 {
		_, err := chromedp.Call(own, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: how.width, Height: how.height, DeviceScaleFactor: 2, Mobile: how.phone,
		})
		if err != nil {
			return nil, err
		}
	}
	var features []*emulation.MediaFeature
	for name, value := range how.media {
		if name == "type" {
			continue
		}
		features = append(features, &emulation.MediaFeature{Name: name, Value: value})
	}
	_, err := chromedp.Call(own, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: how.media["type"], Features: features})
	if err != nil {
		return nil, err
	}
	return t, chromedp.Do(own, chromedp.Navigate(url))
}

type chromiumTab struct {
	ctx    context.Context
	cancel func()
}

func (t *chromiumTab) close() { t.cancel() }

func (t *chromiumTab) evaluate(expression string) (string, error) {
	return chromedp.Run(t.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
}

func (t *chromiumTab) press(keys string) error {
	return chromedp.Do(t.ctx, chromedp.KeyEvent(keys))
}

func (t *chromiumTab) picture() ([]byte, error) {
	result, err := chromedp.Call(t.ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{})
	if err != nil {
		return nil, err
	}
	return result.Data, nil
}

func (t *chromiumTab) offline() error {
	_, err := chromedp.Call(t.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: true, DownloadThroughput: -1, UploadThroughput: -1}},
	})
	return err
}
