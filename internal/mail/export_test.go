package mail

import "github.com/wneessen/go-mail/smtp"

// HeaderText is what becomes of a stranger's text in a header.
var HeaderText = headerText

// PersonName is what becomes of a stranger's name.
var PersonName = personName

// DialAt has a server of any name reached at another address.
func (s *Server) DialAt(address string) { s.dialed = address }

// Iterations is what comes of a challenge of SCRAM.
func Iterations(challenge []byte) error {
	_, err := (&bearable{smtp.ScramSHA256Auth("user", "password")}).Next(challenge, true)
	return err
}
