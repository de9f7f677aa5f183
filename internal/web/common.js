	// What event.js and events.js share: the edge writes it into both.
	// Some themes write one that Intl does not take, such as en-US.UTF-8; its first part may be one.
	const languages = [document.documentElement.lang, navigator.language].flatMap(lang => [lang.replace('_', '-'), lang.split(/[-_]/)[0]]);
	const language = languages.find(lang => {
		try {
			return Intl.getCanonicalLocales(lang)[0] && phrases[lang.toLowerCase().split('-')[0]];
		} catch {}
	}) || site.language || 'en';
	const texts = phrases[language.toLowerCase().split('-')[0]].split('|');
	const say = name => texts[names.indexOf(name)];
	const zoneHere = Intl.DateTimeFormat().resolvedOptions().timeZone;

	const isLink = text => /^https?:\/\//i.test(text);

	// The moments of an event, or its first and its last day.
	const momentsOf = ({all_day, start, end, event_time_end: clock}) => {
		if (!start) return [];
		const to = new Date(end || start);
		// The end of a day is the last minute of it.
		if (end && (all_day || !clock)) to.setTime(to - (all_day ? 864e5 : 6e4));
		return [new Date(start), to];
	};

	// How long to wait until the edge is asked again, in milliseconds.
	const pause = (tries, least = 5) => Math.min(Math.max(least, 2 ** tries), 60) * 1e3 * (1 + Math.random() / 4);

	// Makes an element of a list: its name, its properties, what is in it.
	function make(name, properties, ...content) {
		const element = Object.assign(document.createElement(name), properties);
		element.append(...content.filter(Boolean));
		return element;
	}
	const linkTo = (href, text, part) => make('a', {href, part, target: '_blank', rel: 'noopener noreferrer'}, text);
