// Reads a calendar file with node-ical, and prints its events as calendar_test.go has them.
import {readFileSync} from 'node:fs';
import ical from 'node-ical';

const two = number => String(number).padStart(2, '0');
const events = Object.values(ical.sync.parseICS(readFileSync(0, 'utf8'))).filter(({type}) => type === 'VEVENT').map(event => {
	const text = name => event[name]?.val ?? event[name] ?? '';
	const moment = at => {
		if (!at) {
			return '';
		}
		if (at.dateOnly) { // in the zone of this program
			return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
		}
		if (at.tz && at.tz !== 'Etc/UTC') {
			throw new Error(`a time in ${at.tz}, not in UTC`);
		}
		return at.toISOString().replace('.000Z', 'Z');
	};
	return {
		UID: text('uid'), Summary: text('summary'), Description: text('description'), Location: text('location'), Conference: text('conference'),
		URL: text('url'), Status: text('status'), Start: moment(event.start), End: moment(event.end), Changed: moment(event.lastmodified),
	};
});
console.log(JSON.stringify(events));
