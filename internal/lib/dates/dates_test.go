package dates_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lychgate/caddy-lychgate/internal/lib/dates"
)

func at(day, hour, minute int) time.Time {
	return time.Date(2031, time.May, day, hour, minute, 0, 0, time.UTC)
}

// Each language has what Intl.DateTimeFormat of Node.js 20 (CLDR 48) writes with the styles full and short. Between days there is
// always space about the dash, and Japanese writes a span as it writes a moment.
func TestLanguages(t *testing.T) {
	for tag, want := range map[string][3]string{
		"ar":    {"الخميس، 1 مايو 2031 في 7:00 م", "الخميس، 1 مايو 2031، 7:00–9:00 م", "السبت، 3 مايو 2031"},
		"cs":    {"čtvrtek 1. května 2031 v 19:00", "čtvrtek 1. května 2031 19:00–21:00", "sobota 3. května 2031"},
		"da":    {"torsdag den 1. maj 2031 kl. 19.00", "torsdag den 1. maj 2031 19.00–21.00", "lørdag den 3. maj 2031"},
		"de":    {"Donnerstag, 1. Mai 2031 um 19:00", "Donnerstag, 1. Mai 2031, 19:00–21:00 Uhr", "Samstag, 3. Mai 2031"},
		"en":    {"Thursday, May 1, 2031 at 7:00 PM", "Thursday, May 1, 2031, 7:00 – 9:00 PM", "Saturday, May 3, 2031"},
		"en-GB": {"Thursday, 1 May 2031 at 19:00", "Thursday, 1 May 2031, 19:00–21:00", "Saturday, 3 May 2031"},
		"es":    {"jueves, 1 de mayo de 2031, 19:00", "jueves, 1 de mayo de 2031, 19:00–21:00", "sábado, 3 de mayo de 2031"},
		"fi":    {"torstai 1. toukokuuta 2031 klo 19.00", "torstai 1. toukokuuta 2031 19.00–21.00", "lauantai 3. toukokuuta 2031"},
		"fr":    {"jeudi 1 mai 2031 à 19:00", "jeudi 1 mai 2031, 19:00 – 21:00", "samedi 3 mai 2031"},
		"he":    {"יום חמישי, 1 במאי 2031 בשעה 19:00", "יום חמישי, 1 במאי 2031, 19:00–21:00", "יום שבת, 3 במאי 2031"},
		"it":    {"giovedì 1 maggio 2031 alle ore 19:00", "giovedì 1 maggio 2031, 19:00–21:00", "sabato 3 maggio 2031"},
		"ja":    {"2031年5月1日木曜日 19:00", "2031年5月1日木曜日 19:00～21:00", "2031年5月3日土曜日"},
		"ko":    {"2031년 5월 1일 목요일 PM 7:00", "2031년 5월 1일 목요일 PM 7:00~9:00", "2031년 5월 3일 토요일"},
		"nb":    {"torsdag 1. mai 2031 kl. 19:00", "torsdag 1. mai 2031, 19:00–21:00", "lørdag 3. mai 2031"},
		"nl":    {"donderdag 1 mei 2031 om 19:00", "donderdag 1 mei 2031, 19:00–21:00", "zaterdag 3 mei 2031"},
		"pl":    {"czwartek, 1 maja 2031 19:00", "czwartek, 1 maja 2031, 19:00–21:00", "sobota, 3 maja 2031"},
		"pt":    {"quinta-feira, 1 de maio de 2031 às 19:00", "quinta-feira, 1 de maio de 2031 19:00 – 21:00", "sábado, 3 de maio de 2031"},
		"ru":    {"четверг, 1 мая 2031 г. в 19:00", "четверг, 1 мая 2031 г., 19:00–21:00", "суббота, 3 мая 2031 г."},
		"sv":    {"torsdag 1 maj 2031 kl. 19:00", "torsdag 1 maj 2031 19:00–21:00", "lördag 3 maj 2031"},
		"tr":    {"1 Mayıs 2031 Perşembe 19:00", "1 Mayıs 2031 Perşembe 19:00–21:00", "3 Mayıs 2031 Cumartesi"},
		"uk":    {"четвер, 1 травня 2031 р. о 19:00", "четвер, 1 травня 2031 р., 19:00–21:00", "субота, 3 травня 2031 р."},
		"zh":    {"2031年5月1日星期四 19:00", "2031年5月1日星期四 19:00–21:00", "2031年5月3日星期六"},
	} {
		in := dates.In(tag)
		got := [3]string{in.Moment(at(1, 19, 0)), in.Times(at(1, 19, 0), at(1, 21, 0)), in.Day(at(3, 0, 0))}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got): %s", tag, diff)
		}
	}
}

func TestHalvesOfTheDay(t *testing.T) {
	for _, test := range []struct{ tag, want string }{
		{"ar", "الخميس، 1 مايو 2031، 9:05 ص – 12:00 م"},
		{"en", "Thursday, May 1, 2031, 9:05 AM – 12:00 PM"},
		{"ko", "2031년 5월 1일 목요일 AM 9:05 ~ PM 12:00"},
	} {
		if got := dates.In(test.tag).Times(at(1, 9, 5), at(1, 12, 0)); got != test.want {
			t.Errorf("%s: %s, want %s", test.tag, got, test.want)
		}
	}
}

func TestIn(t *testing.T) {
	const american, british = "Thursday, May 1, 2031", "Thursday, 1 May 2031"
	for tag, want := range map[string]string{
		"": american, "en-US": american, "en_CA": american, "xx": american, "en-AU": british, "EN-gb": british,
		"de-AT": "Donnerstag, 1. Mai 2031", " no": "torsdag 1. mai 2031",
	} {
		if got := dates.In(tag).Day(at(1, 0, 0)); got != want {
			t.Errorf("%q: %s, want %s", tag, got, want)
		}
	}
}

func Example() {
	in := dates.In("en")
	start, end := at(1, 22, 0), at(2, 2, 0)
	fmt.Println(in.Span(in.Moment(start), in.Moment(end)))
	// Output: Thursday, May 1, 2031 at 10:00 PM – Friday, May 2, 2031 at 2:00 AM
}
