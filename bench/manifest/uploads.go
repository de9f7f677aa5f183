package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// uploader uploads a theme.
type uploader struct {
	edge  *edge
	ghost *ghost
	name  string // of the theme
	zip   string // the file
	size  int64  // of the zip, in bytes
}

const uploadPath = "/ghost/api/admin/themes/upload/"

// uploads measures what theme_manifest adds to the upload of a theme.
func uploads(ctx context.Context, folder string) error {
	g, err := signIn(ctx)
	if err != nil {
		return err
	}
	if g == nil {
		fmt.Println("\nuploads are not measured: LYCHGATE_TEST_GHOST is not set")
		return nil
	}
	u := &uploader{ghost: g, name: "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36), zip: filepath.Join(folder, "theme.zip")}
	theme, err := g.source()
	if err != nil {
		return err
	}
	if u.size, err = writeTheme(u.zip, theme, *size); err != nil {
		return err
	}
	if u.edge, err = newEdge(folder); err != nil {
		return err
	}
	defer u.edge.stop()

	fmt.Printf("\nupload of a theme of %.1f MB, and the highest that this process's heap was meanwhile\n%-6s %23s %23s   ratio\n",
		float64(u.size)/1e6, "", "reverse_proxy", "theme_manifest")
	if asked("ghost") {
		err := u.measure(ctx, "Ghost", g.URL)
		if _, removing := g.call(context.WithoutCancel(ctx), http.MethodDelete, "/themes/"+u.name+"/", ""); err == nil {
			err = removing
		}
		if err != nil {
			return err
		}
	}
	if !asked("sink") {
		return nil
	}
	target, err := url.Parse(g.URL)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(uploadPath, u.sink)
	mux.Handle("/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}) // knows who uploads
	sink := httptest.NewServer(mux)
	defer sink.Close()
	if err := u.measure(ctx, "sink", sink.URL); err != nil {
		return err
	}
	fmt.Println("The sink is not Ghost: it is a server in this process that reads the body, does nothing with it, and answers as Ghost would.")
	return u.profile(ctx)
}

// sink reads an upload and gives the response that Ghost would.
func (u *uploader) sink(w http.ResponseWriter, r *http.Request) {
	buffer := make([]byte, 64<<10) // as much as Ghost reads at once
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, buffer)
	if err != nil || n != r.ContentLength {
		http.Error(w, "cut off", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, `{"themes":[{"name":%q}]}`, u.name)
}

// measure uploads through both ports in turn.
func (u *uploader) measure(ctx context.Context, upstream, url string) error {
	if err := u.edge.load(url, u.ghost.Key); err != nil {
		return err
	}
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	ports := []int{u.edge.plainPort, u.edge.themePort}
	times := make(map[int][]time.Duration)
	highest := make(map[int]uint64)
	var ratios []float64
	for round := range *rounds + 1 {
		for i := range ports {
			port := ports[(round+i)%len(ports)] // each is first in every other round
			took, heap, err := u.upload(ctx, client, port)
			if err != nil {
				return err
			}
			if round > 0 { // the first is to open connections
				times[port], highest[port] = append(times[port], took), max(highest[port], heap)
			}
		}
		if round > 0 {
			ratios = append(ratios, float64(times[u.edge.themePort][round-1])/float64(times[u.edge.plainPort][round-1]))
		}
	}
	fmt.Printf("%-6s", upstream)
	for _, port := range ports {
		fmt.Printf(" %10.1f ms %7.1f MB", milliseconds(median(times[port])), float64(highest[port])/1e6)
	}
	fmt.Printf("   %s   %s\n", spread(ratios), verdict(median(ratios) <= 1.1, "≤ 1.1"))
	return nil
}

// upload uploads the theme from its file to a port. It returns how long that
// took, and the highest size of this process's heap meanwhile, in bytes.
func (u *uploader) upload(ctx context.Context, client *http.Client, port int) (took time.Duration, heap uint64, err error) {
	file, err := os.Open(u.zip)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	const boundary = "----WebKitFormBoundaryLychgateBenchm"
	head := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + u.name + ".zip\"\r\nContent-Type: application/zip\r\n\r\n"
	tail := "\r\n--" + boundary + "--\r\n"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", port, uploadPath),
		io.MultiReader(strings.NewReader(head), file, strings.NewReader(tail)))
	if err != nil {
		return 0, 0, err
	}
	request.ContentLength = int64(len(head)+len(tail)) + u.size
	request.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	u.ghost.signed(request)

	runtime.GC() // so that no upload pays for another
	highest := watchHeap()
	start := time.Now()
	response, err := send(client, request)
	took = time.Since(start)
	heap = highest()
	if err != nil {
		return 0, 0, err
	}
	if found := strings.Contains(response, aFinding); found != (port == u.edge.themePort) {
		return 0, 0, fmt.Errorf("the manifest was found: %t, in %s", found, response)
	}
	return took, heap, nil
}

func send(client *http.Client, request *http.Request) (string, error) {
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return string(body), err
}

// watchHeap watches the heap, what is garbage in it included, until the function
// that it returns is called, which returns its highest size in bytes.
func watchHeap() (highest func() uint64) {
	stop, result := make(chan struct{}), make(chan uint64)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		var most uint64
		for {
			metrics.Read(sample)
			most = max(most, sample[0].Value.Uint64())
			select {
			case <-ticker.C:
			case <-stop:
				result <- most
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-result
	}
}

// profile profiles uploads to the sink, if that is asked for.
func (u *uploader) profile(ctx context.Context) error {
	if *profile == "" {
		return nil
	}
	file, err := os.Create(*profile)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for range *rounds {
		if _, _, err := u.upload(ctx, client, u.edge.themePort); err != nil {
			return err
		}
	}
	return nil
}
