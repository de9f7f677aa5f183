package button

import (
	"os"
	"path/filepath"
)

// picture writes what is seen into LYCHGATE_TEST_PICTURES, or into a folder that
// is gone after the test.
func (p *page) picture(name string) {
	p.t.Helper()
	folder := os.Getenv("LYCHGATE_TEST_PICTURES")
	if folder == "" {
		folder = p.t.TempDir()
	}
	// What enters has come to rest.
	p.do("await Promise.all(document.getAnimations().map(a => a.finished))")
	picture, err := p.tab.picture()
	p.must(err)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+"-"+engineName()+".png"), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
