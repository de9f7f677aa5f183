package button

import (
	"context"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

func phoneOrDesktop(width, height int64, mobile bool) setting {
	return func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: width, Height: height, DeviceScaleFactor: 2, Mobile: mobile,
		})
		return err
	}
}

// picture writes what is seen into LYCHGATE_TEST_PICTURES, or into a folder that
// is gone after the test.
func (p *page) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("LYCHGATE_TEST_PICTURES")
	if folder == "" {
		folder = p.t.TempDir()
	}
	// What enters has come to rest.
	js[any](p, "Promise.all(document.getAnimations().map(a => a.finished)).then(() => null)")
	result, err := chromedp.Call(p.ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), result.Data, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
