package pages

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"
)

// quadrants is red, green, blue and white, from the top left.
func quadrants(width, height int) image.Image {
	drawn := image.NewRGBA(image.Rect(0, 0, width, height))
	colours := []color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}
	for y := range height {
		for x := range width {
			drawn.Set(x, y, colours[2*y/height*2+2*x/width])
		}
	}
	return drawn
}

func asPNG(t *testing.T, of image.Image) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, of); err != nil {
		t.Fatalf("png.Encode: %v", err)
	}
	return file.Bytes()
}

// turned encodes a JPEG with an EXIF orientation (Exif 2.32, section 4.6.4).
func turned(t *testing.T, of image.Image, orientation uint16) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := jpeg.Encode(&file, of, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatalf("jpeg.Encode: %v", err)
	}
	tiff := []byte{'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(orientation), 0, 0, 0, 0, 0, 0}
	segment := append([]byte("Exif\x00\x00"), tiff...)
	head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(segment)+2))
	return append(append(head, segment...), file.Bytes()[2:]...)
}

// lastImage is the picture that was uploaded last, with its format.
func (r *room) lastImage(t *testing.T) (image.Image, string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.images) == 0 {
		t.Fatal("got no upload, want at least 1")
	}
	drawn, format, err := image.Decode(bytes.NewReader(r.images[len(r.images)-1]))
	if err != nil {
		t.Fatalf("image.Decode: %v", err)
	}
	return drawn, format
}

// colourAt is "r", "g", "b" or several of these. x and y are from 0 to 1.
func colourAt(of image.Image, x, y float64) string {
	b := of.Bounds()
	red, green, blue, _ := of.At(b.Min.X+int(x*float64(b.Dx())), b.Min.Y+int(y*float64(b.Dy()))).RGBA()
	name := ""
	for _, c := range []struct {
		of   uint32
		name string
	}{{red, "r"}, {green, "g"}, {blue, "b"}} {
		if c.of > 0x8000 {
			name += c.name
		}
	}
	return name
}

// choose chooses a file for a picture.
func (v tab) choose(key, name string, content []byte) {
	v.T.Helper()
	if len(content) < 1<<20 {
		v.Choose(fmt.Sprintf(`[data-key="%s"] input[type=file]`, key), name, content)
		return
	}
	v.T.Fatalf("a file of %d bytes, want less than 1 MiB to be chosen that way", len(content))
}
