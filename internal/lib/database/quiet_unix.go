//go:build unix

package database

import (
	"net"
	"syscall"
)

// isQuiet reports whether a connection to a server is open and nothing has arrived on it,
// without a word to the server. It does not wait for anybody who reads from the connection,
// as pgx may do in the background after a slow write.
func isQuiet(conn net.Conn) bool {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok { // tls.Conn
		conn = secure.NetConn()
	}
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return false
	}
	var peeked error
	err = control.Control(func(fd uintptr) { // Read would wait
		_, _, peeked = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && (peeked == syscall.EAGAIN || peeked == syscall.EINTR)
}
