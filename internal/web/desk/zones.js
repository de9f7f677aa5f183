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

// newNames are those of zones that IANA has renamed. CLDR keeps the old names, so browsers list the zones by those.
const newNames = {
	'Africa/Asmera': 'Africa/Asmara', 'America/Buenos_Aires': 'America/Argentina/Buenos_Aires', 'America/Catamarca': 'America/Argentina/Catamarca',
	'America/Coral_Harbour': 'America/Atikokan', 'America/Cordoba': 'America/Argentina/Cordoba', 'America/Godthab': 'America/Nuuk',
	'America/Indianapolis': 'America/Indiana/Indianapolis', 'America/Jujuy': 'America/Argentina/Jujuy', 'America/Louisville': 'America/Kentucky/Louisville',
	'America/Mendoza': 'America/Argentina/Mendoza', 'Asia/Calcutta': 'Asia/Kolkata', 'Asia/Katmandu': 'Asia/Kathmandu', 'Asia/Rangoon': 'Asia/Yangon',
	'Asia/Saigon': 'Asia/Ho_Chi_Minh', 'Atlantic/Faeroe': 'Atlantic/Faroe', 'Europe/Kiev': 'Europe/Kyiv', 'Pacific/Enderbury': 'Pacific/Kanton',
	'Pacific/Ponape': 'Pacific/Pohnpei', 'Pacific/Truk': 'Pacific/Chuuk',
};
const oldNames = Object.fromEntries(Object.entries(newNames).map(([old, name]) => [name, old]));

const mostZones = 50; // that are shown

const wordsOf = text => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

// namesOfZones has each zone once. The signs of Etc/GMT+6 are the other way round, so nobody is offered those.
const namesOfZones = () => {
	const listed = (Intl.supportedValuesOf?.('timeZone') ?? []).filter(name => !name.startsWith('Etc/'));
	return [...new Set([...Object.keys(zoneWords), ...listed.map(name => newNames[name] ?? name)])];
};

// zones are all that the browser knows, made when the first is asked for.
let zones = null;
const allZones = () => zones ??= namesOfZones()
	.map(name => ({name, city: name.split('/').slice(1).reverse().join(', ').replaceAll('_', ' ') || name, words: wordsOf(`${name} ${oldNames[name] ?? ''} ${zoneWords[name] ?? ''}`)}));

// offsetOf is how far the clocks of a zone are from UTC on a day, such as UTC+5:30. A zone that the browser does not know
// has none. Those of the last day are kept, as each takes the browser a while.
let offsets = new Map(), dayOfOffsets = '';
const offsetOf = (timeZone, day) => {
	const date = day.toISOString().slice(0, 10);
	if (date !== dayOfOffsets) [offsets, dayOfOffsets] = [new Map(), date];
	if (!offsets.has(timeZone)) {
		let offset = '';
		try {
			const parts = new Intl.DateTimeFormat('en', {timeZone, timeZoneName: 'shortOffset'}).formatToParts(day);
			offset = parts.find(({type}) => type === 'timeZoneName').value.replace('GMT', 'UTC').replace('-', '−');
		} catch {}
		offsets.set(timeZone, offset);
	}
	return offsets.get(timeZone);
};

// zonesFor finds the zones that a text may mean, on a day. Each word of it begins one of theirs. Those with the very words
// come first.
const zonesFor = (text, day) => {
	const offset = text.trim().match(/^(?:utc|gmt)?\s*([+−-])\s*0?(\d{1,2})(?::?(\d\d))?$/i);
	if (offset) {
		const [, sign, hours, minutes] = offset, wanted = `UTC${Number(hours) || Number(minutes) ? `${sign.replace('-', '−')}${hours}${Number(minutes) ? `:${minutes}` : ''}` : ''}`;
		return allZones().filter(({name}) => offsetOf(name, day) === wanted);
	}
	const typed = wordsOf(text);
	if (!typed.length) return [];
	const found = allZones().filter(({words}) => typed.every(word => words.some(other => other.startsWith(word))));
	const rank = ({city, words}) => (typed.every(word => words.includes(word)) ? 0 : 2) + (wordsOf(city).join(' ').startsWith(typed.join(' ')) ? 0 : 1);
	return found.sort((a, b) => rank(a) - rank(b));
};

customElements.define('desk-zone', class extends HTMLElement {
	#input;
	#list;
	#found = [];
	#at = -1; // which of them Enter and Tab take
	#isTaken = false; // the key that is pressed, by the list
	#before = ''; // what was in the field when somebody went there

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
		this.#input.addEventListener('keypress', event => {
			if (event.key === 'Enter' && this.#isTaken) event.preventDefault(); // which would send the form
		});
		this.#input.addEventListener('focus', () => {
			this.#before = this.#input.value;
		});
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
		const found = zonesFor(text, this.#day);
		this.#found = found.slice(0, mostZones);
		this.#list.replaceChildren(...this.#found.map(({name, city}, i) => {
			const item = document.createElement('li');
			Object.assign(item, {id: `${this.#list.id}-${i}`, role: 'option', ariaSelected: 'false'});
			item.append(textOf('b', city), ' ', textOf('span', [offsetOf(name, this.#day), name].filter(Boolean).join(' · ')));
			return item;
		}));
		this.#list.scrollTop = 0;
		this.#open(found.length > 0);
		if (text.trim()) announce(found.length ? `${found.length > mostZones ? `The first ${mostZones} of ` : ''}${found.length} time zone${found.length === 1 ? '' : 's'}` : 'No time zone has this name.');
	}

	#open(isOpen) {
		this.#list.hidden = !isOpen;
		this.#input.setAttribute('aria-expanded', isOpen);
		this.#mark(isOpen ? 0 : -1);
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
		if (event.isComposing) return; // such as Enter, which takes a word of an input method
		const isOpen = !this.#list.hidden, count = this.#found.length;
		this.#isTaken = isOpen;
		if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
			event.preventDefault();
			if (!isOpen) this.#show(this.#input.value);
			else this.#mark((this.#at + (event.key === 'ArrowDown' ? 1 : count - 1)) % count);
		} else if (isOpen && event.key === 'Enter') {
			event.preventDefault();
			this.#choose(this.#at);
		} else if (isOpen && event.key === 'Tab') {
			this.#choose(this.#at);
		} else if (isOpen && event.key === 'Escape') {
			event.preventDefault();
			this.#open(false);
		}
	}

	// leave takes a name or a city that was typed, in any case, or the only zone that was found.
	#leave() {
		const found = this.#list.hidden ? [] : this.#found, typed = wordsOf(this.#input.value).join(' ');
		this.#open(false);
		if (!typed || this.#input.value === this.#before) return;
		const isNamed = ({name, city}) => [name, city].some(text => wordsOf(text).join(' ') === typed);
		const zone = allZones().find(isNamed) ?? (found.length === 1 ? found[0] : null);
		if (zone) this.#set(zone.name);
	}

	#choose(at) {
		this.#open(false);
		this.#set(this.#found[at].name);
	}

	#set(name) {
		if (this.#input.value === name) return;
		this.#input.value = name;
		this.#input.dispatchEvent(new Event('input', {bubbles: true}));
	}
});
