package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// MarshalJSON writes an object with the types in their order.
func (t Types) MarshalJSON() ([]byte, error) {
	var o object
	for _, one := range t {
		o.add(one.Key, one)
	}
	return o.end()
}

// UnmarshalJSON reads an object and keeps its order.
func (t *Types) UnmarshalJSON(text []byte) error {
	*t = Types{}
	return eachKey(text, func(key string, value *json.Decoder) error {
		one := EventType{Key: key}
		err := value.Decode(&one)
		*t = append(*t, one)
		return err
	})
}

// MarshalJSON writes an object with the fields in their order.
func (c FieldConstraints) MarshalJSON() ([]byte, error) {
	var o object
	for _, one := range c {
		o.add(one.Field, one)
	}
	return o.end()
}

// UnmarshalJSON reads an object and keeps its order.
func (c *FieldConstraints) UnmarshalJSON(text []byte) error {
	*c = FieldConstraints{}
	return eachKey(text, func(key string, value *json.Decoder) error {
		one := FieldConstraint{Field: key}
		err := value.Decode(&one)
		*c = append(*c, one)
		return err
	})
}

// object is a JSON object that is being written in a given order.
type object struct {
	text []byte
	err  error
}

func (o *object) add(key string, value any) {
	k, err := json.Marshal(key)
	if o.err == nil {
		o.err = err
	}
	v, err := json.Marshal(value)
	if o.err == nil {
		o.err = err
	}
	if len(o.text) > 0 {
		o.text = append(o.text, ',')
	}
	o.text = append(append(append(o.text, k...), ':'), v...)
}

func (o *object) end() ([]byte, error) {
	return append(append([]byte{'{'}, o.text...), '}'), o.err
}

// eachKey reads a JSON object in its order.
func eachKey(text []byte, read func(key string, value *json.Decoder) error) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	token, err := decoder.Token()
	if err != nil || token == nil { // null
		return err
	}
	if token != json.Delim('{') {
		return fmt.Errorf("%v where an object belongs", token)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := read(name, decoder); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	if _, err = decoder.Token(); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
