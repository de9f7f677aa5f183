// Package messaging has the messaging states of a registration, and what readers are told of them
// in many languages (docs/registration.md#states).
package messaging

import "strings"

// State is a messaging state, by its name in theme manifests.
type State string

// The states.
const (
	CanRegister        State = "can_register"
	LoginRequiredFree  State = "login_required_free"
	LoginRequiredPaid  State = "login_required_paid"
	UpgradeRequired    State = "upgrade_required"
	Registered         State = "registered"
	RegistrationClosed State = "registration_closed"
	EventPassed        State = "event_passed"
)

// Reason says why registration is closed.
type Reason string

// The reasons.
const (
	ByDeadline  Reason = "deadline"
	IsFull      Reason = "full"
	IsCancelled Reason = "cancelled"
)

// DefaultLanguage is for readers of other languages.
const DefaultLanguage = "en"

// Language finds the language of our messages for a BCP 47 tag, such as pt for pt-BR. ok is false
// if there are no messages in it.
func Language(tag string) (string, bool) {
	primary, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	primary = strings.ToLower(strings.TrimSpace(primary))
	_, ok := phrasesOf[primary]
	return primary, ok
}

// Message is the default text for a state and its reason, where staff have written none. If there
// are no messages in the language, the text is in English.
func Message(language string, state State, reason Reason) string {
	in := phrasesIn(language)
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

// WereRegistered tells a reader that they had registered for an event that was cancelled. It is in English if there are no
// messages in the language.
func WereRegistered(language string) string { return phrasesIn(language).wereRegistered }

// OpenUntil says how long registration is open. until is a date in the language. It is in English if there are no messages in the
// language.
func OpenUntil(language, until string) string {
	return strings.Replace(phrasesIn(language).openUntil, "*", until, 1)
}

func phrasesIn(language string) phrases { return wordsIn(phrasesOf, language) }

// wordsIn reads no, the older code of Norwegian, as nb where it has no words of its own.
func wordsIn[T any](of map[string]T, language string) T {
	if words, ok := of[language]; ok {
		return words
	}
	if language == "no" {
		return of["nb"]
	}
	return of[DefaultLanguage]
}

// NeedsScript tells a reader without JavaScript how to register, in a language that [Language] has
// named.
func NeedsScript(language string) string { return phrasesOf[language].needsScript }

// Direction is how a language is written, ltr or rtl.
func Direction(language string) string {
	if language == "ar" || language == "he" {
		return "rtl"
	}
	return "ltr"
}
