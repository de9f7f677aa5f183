// Reads a calendar file with ical.js, and prints its events as calendar_test.go has them.
import {readFileSync} from 'node:fs';
import ICAL from 'ical.js';

const calendar = new ICAL.Component(ICAL.parse(readFileSync(0, 'utf8')));
const events = calendar.getAllSubcomponents('vevent').map(event => {
	const text = name => event.getFirstPropertyValue(name) ?? '';
	const moment = name => {
		const time = event.getFirstPropertyValue(name);
		if (!time) {
			return '';
		}
		if (!time.isDate && time.zone !== ICAL.Timezone.utcTimezone) {
			throw new Error(`${name} is not in UTC`);
		}
		return time.toString();
	};
	return {
		UID: text('uid'), Summary: text('summary'), Description: text('description'), Location: text('location'), Conference: text('conference'),
		URL: text('url'), Status: text('status'), Start: moment('dtstart'), End: moment('dtend'), Changed: moment('last-modified'),
	};
});
console.log(JSON.stringify(events));
