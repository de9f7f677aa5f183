package ghost

import (
	"encoding/json"
	"errors"
	"fmt"
)

// This file decodes Ghost's responses. A site's Ghost may be anybody's, and a few bytes of JSON can
// become an element of many bytes in memory.

const (
	// maxElements bounds the elements of all lists in a response together. One of Ghost's has more than 128 bytes: its
	// ID, name, slug and two times.
	maxElements = maxResponse / 128

	// maxValues bounds all values in a response. One of Ghost's has more than 16 bytes with its key, on average.
	maxValues = maxResponse / 16

	// maxNesting bounds how deep they are nested. Ghost's responses are some 10 deep, and checkSize has a bit for each.
	maxNesting = 64
)

var (
	errTooLong  = errors.New("the response is too large")
	errLongPage = errors.New("its list is longer than was asked for; does something in front of Ghost drop the query from a request?")
)

// decode is json.Unmarshal for what comes from Ghost. Errors: also errTooLong.
func decode(text []byte, into any) error { return decodePage(text, 0, into) }

// decodePage is decode for a response whose list has limit elements at most; 0 is any number. Errors: also errTooLong
// and errLongPage.
func decodePage(text []byte, limit int, into any) error {
	if err := checkSize(text, limit); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// checkPage checks that a response is a page of a list. What a page does not name is taken to be deleted, so
// an object of something in front of Ghost must not pass for an empty one.
func checkPage(text []byte, list string) error {
	var page map[string]firstByte
	if err := json.Unmarshal(text, &page); err != nil {
		return err
	}
	if page[list] != '[' {
		return fmt.Errorf("the response is no list of %s; is this Ghost's own address?", list)
	}
	return nil
}

// firstByte is the first byte of a value in JSON, which tells its type.
type firstByte byte

func (b *firstByte) UnmarshalJSON(text []byte) error {
	*b = firstByte(text[0])
	return nil
}

// checkSize counts before anything is decoded: encoding/json goes on after an element of a wrong type. It takes text
// that is not JSON too, for json.Unmarshal to refuse.
func checkSize(text []byte, limit int) error {
	var isList uint64 // has a bit for each open object and list, that of the innermost last
	depth, values, elements, page := 0, 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			continue
		case '[', '{':
			depth++
			isList <<= 1
			if text[i] == '[' {
				isList |= 1
			}
			if depth == 2 {
				page = 0
			}
		case ']', '}':
			depth--
			isList >>= 1
			continue
		case ',':
		default:
			continue
		}
		values++
		if isList&1 == 1 {
			elements++ // the first one with the bracket, so an empty list has one too
			if depth == 2 && isList == 1 {
				page++
			}
		}
		switch {
		case values > maxValues, elements > maxElements, depth > maxNesting:
			return fmt.Errorf("%w: it has more than %d values, %d elements of lists or %d levels", errTooLong, maxValues, maxElements, maxNesting)
		case limit > 0 && page > limit:
			return errLongPage
		}
	}
	return nil
}
