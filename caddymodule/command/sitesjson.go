package command

import (
	"bytes"
	"encoding/json"
	"io"
)

// sitesJSON writes a list of sites as the admin API does, one by one: there may be 100,000.
type sitesJSON struct {
	out   io.Writer
	begin string // of the next one
	err   error  // the first
}

func newSitesJSON(out io.Writer) *sitesJSON { return &sitesJSON{out: out, begin: `{"sites":[`} }

func (s *sitesJSON) add(site any) {
	if s.err != nil {
		return
	}
	text := bytes.NewBufferString(s.begin + "\n")
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if s.err = encoder.Encode(site); s.err == nil {
		_, s.err = s.out.Write(bytes.TrimRight(text.Bytes(), "\n"))
	}
	s.begin = ","
}

// end returns the first error.
func (s *sitesJSON) end() error {
	if s.err == nil && s.begin != "," {
		_, s.err = io.WriteString(s.out, s.begin)
	}
	if s.err == nil {
		_, s.err = io.WriteString(s.out, "]}\n")
	}
	return s.err
}
