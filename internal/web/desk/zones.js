// desk-zone finds a time zone as somebody types: by a city, an abbreviation or an offset. What is sent is its IANA name.

// zoneWords are what else people call the zones that are asked for most, which are offered first.
const zoneWords = {
	UTC: 'gmt universal', 'America/New_York': 'est edt et eastern washington boston', 'America/Chicago': 'cst cdt central', 'America/Denver': 'mst mdt mountain',
	'America/Los_Angeles': 'pst pdt pt pacific san francisco seattle', 'America/Phoenix': 'mst', 'America/Anchorage': 'akst akdt', 'America/Halifax': 'ast adt', 'America/Sao_Paulo': 'brt',
	'America/Toronto': 'est edt eastern', 'America/Vancouver': 'pst pdt pacific', 'Pacific/Honolulu': 'hst hawaii', 'Europe/London': 'gmt bst', 'Europe/Lisbon': 'wet west', 'Europe/Berlin': 'cet cest', 'Europe/Paris': 'cet cest',
	'Europe/Madrid': 'cet cest', 'Europe/Rome': 'cet cest', 'Europe/Vienna': 'cet cest', 'Europe/Zurich': 'cet cest', 'Europe/Amsterdam': 'cet cest', 'Europe/Athens': 'eet eest',
	'Europe/Helsinki': 'eet eest', 'Europe/Kyiv': 'eet eest', 'Europe/Istanbul': 'trt', 'Europe/Moscow': 'msk', 'Africa/Johannesburg': 'sast', 'Africa/Nairobi': 'eat', 'Africa/Lagos': 'wat', 'Asia/Jerusalem': 'idt',
	'Asia/Dubai': 'gst', 'Asia/Karachi': 'pkt', 'Asia/Kolkata': 'ist india delhi mumbai', 'Asia/Bangkok': 'ict', 'Asia/Singapore': 'sgt', 'Asia/Hong_Kong': 'hkt', 'Asia/Shanghai': 'beijing',
	'Asia/Seoul': 'kst', 'Asia/Tokyo': 'jst', 'Australia/Perth': 'awst', 'Australia/Adelaide': 'acst acdt', 'Australia/Brisbane': 'aest', 'Australia/Sydney': 'aest aedt', 'Pacific/Auckland': 'nzst nzdt',
};

const mostZones = 50; // that are shown

const wordsOf = text => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

// zones are all that the browser knows, made when the first is asked for.
let zones = null;
const allZones = () => zones ??= [...new Set([...Object.keys(zoneWords), ...Intl.supportedValuesOf?.('timeZone') ?? []])]
	.map(name => ({name, city: name.split('/').slice(1).reverse().join(', ').replaceAll('_', ' ') || name, words: wordsOf(`${name} ${zoneWords[name] ?? ''}`)}));

// offsetOf is how far the clocks of a zone are from UTC on a day, such as UTC+5:30. A zone that the browser does not know
// has none.
const offsetOf = (timeZone, day) => {
	try {
		const parts = new Intl.DateTimeFormat('en', {timeZone, timeZoneName: 'shortOffset'}).formatToParts(day);
		return parts.find(({type}) => type === 'timeZoneName').value.replace('GMT', 'UTC').replace('-', '−');
	} catch {
		return '';
	}
};

// zonesFor finds the zones that a text may mean, on a day. Each word of it begins one of theirs.
const zonesFor = (text, day) => {
	const offset = text.trim().match(/^(?:utc|gmt)?\s*([+−-])\s*0?(\d{1,2})(?::?(\d\d))?$/i);
	if (offset) {
		const [, sign, hours, minutes] = offset, wanted = `UTC${Number(hours) || Number(minutes) ? `${sign.replace('-', '−')}${hours}${Number(minutes) ? `:${minutes}` : ''}` : ''}`;
		return allZones().filter(({name}) => offsetOf(name, day) === wanted);
	}
	const typed = wordsOf(text);
	if (!typed.length) return [];
	const found = allZones().filter(({words}) => typed.every(word => words.some(other => other.startsWith(word))));
	const isNamed = ({city}) => wordsOf(city).join(' ').startsWith(typed.join(' '));
	return [...found.filter(isNamed), ...found.filter(zone => !isNamed(zone))];
};

customElements.define('desk-zone', class extends HTMLElement {
	#input;
	#list;
	#found = [];
	#at = -1; // which of them is chosen with the arrow keys

	connectedCallback() {
		this.#input = this.querySelector('input');
		if (this.#list) return;
		this.#list = document.createElement('ul');
		Object.assign(this.#list, {id: `${this.#input.id}-zones`, className: 'zones', role: 'listbox', ariaLabel: 'Time zones', hidden: true});
		this.append(this.#list);
		for (const [name, value] of Object.entries({role: 'combobox', 'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': this.#list.id})) this.#input.setAttribute(name, value);
		this.#input.addEventListener('input', event => {
			if (event.isTrusted) this.#show(this.#input.value);
		});
		this.#input.addEventListener('keydown', event => this.#press(event));
		for (const name of ['keydown', 'keypress']) {
			this.#input.addEventListener(name, event => {
				if (event.key === 'Enter') event.preventDefault(); // which would send the form
			});
		}
		this.#input.addEventListener('blur', () => this.#leave());
		this.#list.addEventListener('pointerdown', event => {
			event.preventDefault(); // the focus stays
		});
		this.#list.addEventListener('click', event => {
			const item = event.target.closest('li');
			if (item) this.#choose([...this.#list.children].indexOf(item));
		});
	}

	get #day() {
		const day = new Date(`${document.querySelector('[data-key=event_date] [name]')?.value}T12:00Z`);
		return Number.isNaN(day.getTime()) ? new Date() : day;
	}

	#show(text) {
		this.#found = zonesFor(text, this.#day).slice(0, mostZones);
		this.#list.replaceChildren(...this.#found.map(({name, city}, i) => {
			const item = document.createElement('li');
			Object.assign(item, {id: `${this.#list.id}-${i}`, role: 'option', ariaSelected: 'false'});
			item.append(textOf('b', city), ' ', textOf('span', [offsetOf(name, this.#day), name].filter(Boolean).join(' · ')));
			return item;
		}));
		this.#list.scrollTop = 0;
		this.#open(this.#found.length > 0);
		this.#mark(-1);
		if (text.trim()) announce(this.#found.length ? `${this.#found.length} time zones` : 'No time zone has this name.');
	}

	#open(isOpen) {
		this.#list.hidden = !isOpen;
		this.#input.setAttribute('aria-expanded', isOpen);
	}

	#mark(at) {
		this.#at = at;
		for (const [i, item] of [...this.#list.children].entries()) item.ariaSelected = String(i === at);
		const item = this.#list.children[at];
		if (item) this.#input.setAttribute('aria-activedescendant', item.id);
		else this.#input.removeAttribute('aria-activedescendant');
		item?.scrollIntoView({block: 'nearest'});
	}

	#press(event) {
		const isOpen = !this.#list.hidden, count = this.#found.length;
		if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
			event.preventDefault();
			if (!isOpen) this.#show(this.#input.value);
			else this.#mark(event.key === 'ArrowDown' ? (this.#at + 1) % count : (this.#at <= 0 ? count : this.#at) - 1);
		} else if (isOpen && event.key === 'Enter') {
			this.#choose(Math.max(this.#at, 0));
		} else if (isOpen && event.key === 'Escape') {
			event.preventDefault();
			this.#open(false);
			this.#mark(-1);
		}
	}

	// leave takes what is chosen, or else a name or a city that was typed, in any case, or the only zone that was found.
	#leave() {
		const typed = wordsOf(this.#input.value).join(' ');
		const isNamed = ({name, city}) => typed && [name, city].some(text => wordsOf(text).join(' ') === typed);
		const found = this.#list.hidden ? [] : this.#found;
		const zone = found[this.#at] ?? allZones().find(isNamed) ?? (found.length === 1 ? found[0] : null);
		this.#open(false);
		if (zone) this.#set(zone.name);
	}

	#choose(at) {
		this.#open(false);
		this.#set(this.#found[at].name);
		this.#mark(-1);
	}

	#set(name) {
		if (this.#input.value === name) return;
		this.#input.value = name;
		this.#input.dispatchEvent(new Event('input', {bubbles: true}));
	}
});
