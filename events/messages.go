package events

import "strings"

// defaultLanguage is for readers of other languages.
const defaultLanguage = "en"

// Language returns the language of our messages that a BCP 47 tag names, such as pt for pt-BR,
// and false if there are none in it.
func Language(tag string) (string, bool) {
	primary, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	primary = strings.ToLower(strings.TrimSpace(primary))
	_, ok := phrasesOf[primary]
	return primary, ok
}

// Message returns what a reader is told of a state and its reason where staff have written
// nothing. Of a language in which there are no messages it is the English one.
func Message(language string, state State, reason Reason) string {
	in, ok := phrasesOf[language]
	if !ok {
		in = phrasesOf[defaultLanguage]
	}
	switch reason {
	case IsFull:
		return in.full
	case IsCancelled:
		return in.cancelled
	case ByDeadline:
	}
	switch state {
	case CanRegister:
		return in.canRegister
	case LoginRequiredFree:
		return in.loginRequiredFree
	case LoginRequiredPaid:
		return in.loginRequiredPaid
	case UpgradeRequired:
		return in.upgradeRequired
	case Registered:
		return in.registered
	case EventPassed:
		return in.eventPassed
	case RegistrationClosed:
	}
	return in.registrationClosed
}
