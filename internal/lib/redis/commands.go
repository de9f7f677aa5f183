package redis

import "strings"

// wrote takes what is about to be written: rueidis writes commands as arrays of bulk strings.
func (p *protocol) wrote(b []byte) {
	w := &p.writing
	for len(b) > 0 {
		if !w.isWord {
			c := b[0]
			b = b[1:]
			switch {
			case c >= '0' && c <= '9':
				w.length = w.length*10 + int(c-'0')
			case c != '\n':
			case !w.isOpen:
				w.isOpen, w.words, w.length = true, w.length, 0
			default:
				w.isWord, w.left, w.length = true, w.length+2, 0
			}
			continue
		}
		n := min(len(b), w.left)
		w.keep(b[:min(n, max(0, w.left-2))])
		b = b[n:]
		if w.left -= n; w.left > 0 {
			continue
		}
		w.isWord = false
		w.count++
		if w.count < w.words {
			continue
		}
		p.ask()
		*w = command{afterUnsubscribe: w.afterUnsubscribe}
	}
}

// ask notes that a command is written whole.
func (p *protocol) ask() {
	w := &p.writing
	name, second := w.name[:w.nameLen], w.second[:w.len]
	a := asked{}
	switch {
	case is(name, "HELLO"):
		a.shape = anyMap
		p.hasHello = p.hasHello || is(second, "3")
	case is(name, "CLUSTER"):
		a.shape = list
	case is(name, "ROLE"):
		a.shape, a.least = list, 1
	case is(name, "SENTINEL"):
		a.shape = list
		if is(second, "GET-MASTER-ADDR-BY-NAME"[:len(w.second)]) {
			a.least = 2
		}
	case is(name, "PING") && w.afterUnsubscribe:
		a.shape = onlyPong
	case is(name, "PING"):
		a.shape = pong
	case is(name, "SUBSCRIBE"):
		a = asked{confirmed, max(1, w.words-1), 's'}
	case is(name, "UNSUBSCRIBE"):
		a = asked{confirmed, max(1, w.words-1), 'u'}
	}
	w.afterUnsubscribe = is(name, "UNSUBSCRIBE")
	if p.first > 0 && len(p.pending) == cap(p.pending) { // in place of growing
		p.pending = p.pending[:copy(p.pending, p.pending[p.first:])]
		p.first = 0
	}
	p.pending = append(p.pending, a)
}

func is(word []byte, want string) bool { return strings.EqualFold(string(word), want) }
