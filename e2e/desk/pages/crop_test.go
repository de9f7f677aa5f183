package pages

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"github.com/lychgate/caddy-lychgate/e2e/browser"
)

// The frame follows the mouse, at its corners too, and the arrow keys. It does not leave the
// picture.
func TestFrameIsMoved(t *testing.T) {
	r := open(t).withParties()
	v := r.visit("Editor", "events?new=", browser.Look{Width: 1024, Height: 768})
	v.choose("badge", "sky.png", asPNG(t, quadrants(800, 400)))
	v.Until("$('dialog.crop')?.open")
	// The sides of the frame, in pixels of the picture.
	frame := func() []int {
		t.Helper()
		return js[[]int](v, `(() => {
			const stage = $('.stage').getBoundingClientRect(), box = $('.frame').getBoundingClientRect(), scale = 800 / stage.width;
			return [box.left - stage.left, box.top - stage.top, box.width, box.height].map(side => Math.round(side * scale));
		})()`)
	}
	// drag drags a handle by so many pixels of the picture.
	drag := func(handle string, by image.Point) {
		t.Helper()
		at := js[[]float64](v, "(({left, top, width, height}) => [left + width / 2, top + height / 2, $('.stage').getBoundingClientRect().width / 800])($('"+handle+"').getBoundingClientRect())")
		from := image.Pt(int(at[0]), int(at[1]))
		v.Must(v.Drag(from, from.Add(image.Pt(int(float64(by.X)*at[2]), int(float64(by.Y)*at[2])))))
	}
	near := func(what string, want ...int) {
		t.Helper()
		got := frame()
		for i := range want {
			if got[i] < want[i]-3 || got[i] > want[i]+3 { // the mouse moves by whole pixels of the screen
				t.Errorf("%s: the frame is at %v, want %v", what, got, want)
				return
			}
		}
	}
	near("at first", 200, 0, 400, 400)
	drag(".move", image.Pt(100, 50))
	near("moved to the right, and not below the picture", 300, 0, 400, 400)
	drag(".corner.nw", image.Pt(100, 100))
	near("smaller at the top left", 400, 100, 300, 300)
	drag(".move", image.Pt(-300, -60))
	near("moved to the left and up", 100, 40, 300, 300)
	v.Do("$('.move').focus()")
	v.Must(v.Press(strings.Repeat(browser.ArrowRight, 5)))
	near("moved with the keyboard", 140, 40, 300, 300)
	v.Must(v.Press(browser.ArrowDown))
	near("and down", 140, 48, 300, 300)
	v.Do("$('.corner.se').focus()")
	v.Must(v.Press(browser.ArrowRight))
	near("larger at the bottom right", 140, 48, 308, 308)
	size := js[string](v, "text($('.crop .size'))")
	v.press("Use this part")
	v.Until("text($('[data-key=badge] .said')) === 'The picture was uploaded.'")
	drawn, _ := r.lastImage(t)
	made := drawn.Bounds()
	diff(t, "what was made", []any{size, "r", "b", "g", "rgb"}, []any{
		fmt.Sprintf("%d × %d px", made.Dx(), made.Dy()), colourAt(drawn, .1, .1), colourAt(drawn, .1, .9), colourAt(drawn, .95, .1), colourAt(drawn, .95, .9),
	})
}
