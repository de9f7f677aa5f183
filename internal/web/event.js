/*! Lychgate, Apache-2.0. See docs/event_page.md */
(function begin(isLast) {
	const tag = 'lychgate-event', parameter = 'lychgate-registration';
	if (customElements.get(tag)) return;

	// The edge writes what the site has.
	const site = {events: '/ghost/lychgate/events', registration: true, fields: true, button: '', language: ''};

	// Of each language, in the order of names. The edge leaves one of them.
	const names = 'again calendar online cancelled'.split(' ');
	const phrases = {
		__proto__: null,
		ar: 'لا توجد إجابة بعد. سنحاول مجددًا…|إضافة إلى التقويم|المشاركة عبر الإنترنت|أُلغيت هذه الفعالية.',
		cs: 'Zatím bez odpovědi. Zkoušíme to znovu…|Přidat do kalendáře|Připojit se online|Tato akce je zrušena.',
		da: 'Intet svar endnu. Prøver igen…|Føj til kalender|Deltag online|Arrangementet er aflyst.',
		de: 'Noch keine Antwort. Neuer Versuch …|In den Kalender|Online teilnehmen|Diese Veranstaltung ist abgesagt.',
		en: 'No response yet. Trying again…|Add to calendar|Join online|This event is cancelled.',
		es: 'Aún sin respuesta. Reintentando…|Añadir al calendario|Participar en línea|Este evento se ha cancelado.',
		fi: 'Ei vielä vastausta. Yritetään uudelleen…|Lisää kalenteriin|Osallistu verkossa|Tapahtuma on peruttu.',
		fr: 'Pas encore de réponse. Nouvel essai…|Ajouter au calendrier|Participer en ligne|Cet événement est annulé.',
		he: 'אין תשובה עדיין. מנסים שוב…|הוספה ליומן|הצטרפות מקוונת|האירוע בוטל.',
		it: 'Ancora nessuna risposta. Nuovo tentativo…|Aggiungi al calendario|Partecipa online|Questo evento è annullato.',
		ja: 'まだ応答がありません。再試行しています…|カレンダーに追加|オンラインで参加|このイベントは中止になりました。',
		ko: '아직 응답이 없어요. 다시 시도하는 중…|캘린더에 추가|온라인으로 참가|이 행사는 취소되었어요.',
		nb: 'Ikke noe svar ennå. Prøver igjen…|Legg til i kalender|Delta på nett|Arrangementet er avlyst.',
		nl: 'Nog geen antwoord. Nieuwe poging…|Toevoegen aan agenda|Online deelnemen|Dit evenement is geannuleerd.',
		pl: 'Brak odpowiedzi. Próbujemy ponownie…|Dodaj do kalendarza|Dołącz online|To wydarzenie jest odwołane.',
		pt: 'Ainda sem resposta. A tentar de novo…|Adicionar ao calendário|Participar online|Este evento foi cancelado.',
		ru: 'Пока нет ответа. Пробуем ещё раз…|Добавить в календарь|Участвовать онлайн|Мероприятие отменено.',
		sv: 'Inget svar än. Försöker igen…|Lägg till i kalendern|Delta online|Evenemanget är inställt.',
		tr: 'Henüz yanıt yok. Yeniden deneniyor…|Takvime ekle|Çevrim içi katıl|Bu etkinlik iptal edildi.',
		uk: 'Відповіді ще немає. Пробуємо знову…|Додати до календаря|Приєднатися онлайн|Подію скасовано.',
		zh: '尚无响应，正在重试…|添加到日历|在线参加|此活动已取消。',
	};
	phrases.no = phrases.nb;

	// A page in another language loads the script of that, unless a policy or a proxy keeps that away.
	const here = [document.documentElement.lang, navigator.language].map(lang => lang.toLowerCase().split(/[-_]/)[0])
		.find(lang => 'ar cs da de en es fi fr he it ja ko nb nl no pl pt ru sv tr uk zh'.split(' ').includes(lang));
	if (here && here !== site.language && !isLast) {
		if (!window[parameter]) {
			window[parameter] = true; // for all scripts of the page
			import(new URL(site.events.replace(/[^/]*$/, 'event.js?' + here), location)).catch(() => {}).then(() => begin(true));
		}
		return;
	}

	// common.js

	function when(event, timeZone) {
		const [from, to] = momentsOf(event);
		if (!from) return '';
		const style = event.all_day ? {dateStyle: 'full', timeZone: 'UTC'} : {dateStyle: 'full', timeStyle: 'short', timeZone};
		try {
			return new Intl.DateTimeFormat(language, style).formatRange(from, to);
		} catch {
			return ''; // a time zone that this browser does not know
		}
	}

	const nameOf = (timeZone, at) => new Intl.DateTimeFormat(language, {timeZone, timeZoneName: 'long'})
		.formatToParts(at).find(({type}) => type === 'timeZoneName').value;

	// A day before its start, how long that is.
	function countdown(event) {
		const minutes = Math.ceil((momentsOf(event)[0] - Date.now()) / 6e4);
		if (event.all_day || !(minutes > 0 && minutes <= 1440)) return '';
		const format = new Intl.RelativeTimeFormat(language);
		return minutes > 99 ? format.format(Math.round(minutes / 60), 'hour') : format.format(minutes, 'minute');
	}

	// The value of a custom field.
	function shown(value) {
		if (value === true) return '✓';
		if (/^https?:\/\/\S+$/i.test(value)) return linkTo(value, value.replace(/^.*?:../, ''), 'field-link');
		if (/^\d{4}-\d\d-\d\d$/.test(value) && +new Date(value)) return new Date(value).toLocaleDateString(language, {dateStyle: 'full', timeZone: 'UTC'});
		return value.toLocaleString(language, {useGrouping: 'min2'}); // years have no comma
	}

	function calendarsOf(event, url) {
		const [from, to] = momentsOf(event);
		if (!from) return {};
		if (event.all_day) to.setTime(+to + 864e5);
		else if (to <= from) to.setTime(+from + 36e5);
		const [start, end] = [from, to].map(at => at.toISOString().replace(event.all_day ? /T.*/ : /\.\d+/, ''));
		const [short, shortEnd] = [start, end].map(text => text.replace(/[-:]/g, ''));
		const link = (page, values) => `https://${page}?${new URLSearchParams(values)}`;
		const place = event.location || url, details = event.description + (url && place !== url ? '\n\n' + url : '');
		return {
			ics: `${site.events}/${event.id}.ics`,
			google: link('calendar.google.com/calendar/render', {action: 'TEMPLATE', text: event.name, dates: `${short}/${shortEnd}`, location: place, details}),
			outlook: link('outlook.live.com/calendar/0/action/compose', {rru: 'addevent', subject: event.name, startdt: start, enddt: end, allday: event.all_day, location: place, body: details}),
			yahoo: link('calendar.yahoo.com/', {v: 60, title: event.name, st: short, ...(event.all_day ? {dur: 'allday'} : {et: shortEnd}), in_loc: place, desc: details}),
		};
	}

	const style = new CSSStyleSheet();
	style.replaceSync(`
:host { display: block; margin-block: 0 1.5em; font-size: max(.9em, 15px); line-height: 1.5; text-align: start }
:host([hidden]), :host([display=none]), [hidden] { display: none !important }
[part=event] {
	--b: var(--lychgate-event-accent, var(--ghost-accent-color, #15171a));
	--w: clamp(0, (.179 - y) * 1e6, 1);
	display: grid; gap: .75em; padding: var(--lychgate-event-padding, 1em 1.25em);
	border: var(--lychgate-event-border, 1px solid #8886); border-radius: var(--lychgate-event-radius, .5em);
	background: var(--lychgate-event-background, none); overflow-wrap: anywhere;
}
p, h2, ul, dl, dd { margin: 0; padding: 0; list-style: none }
h2, [part=cancelled], [part=reader-time] { font: inherit; font-size: 1.2em; font-weight: 700; line-height: 1.35 }
small { display: block; font-weight: 400; font-size: .75em }
[part=countdown] { font-weight: 600 }
a, summary { color: inherit }
a { display: inline-block; padding-block: .3em }
summary { cursor: pointer; padding-block: .4em; text-decoration: underline }
ul { display: flex; flex-wrap: wrap; gap: 0 1.5em }
li a { padding-block: .4em }
[part=message], [part=place], [part=name], dt, dd { unicode-bidi: plaintext; white-space: pre-line }
[data-state=registered] [part=message]::before { content: '✓ '; content: '✓ ' / ''; color: var(--b); font-weight: 700 }
dl { display: grid; gap: .4em }
dl:empty { display: none }
dt, [part=event-time] { font-size: .9em }
dt { font-weight: 600 }
[part=name] { display: block }
[part=places], [part=moved], [part=inbox] { flex-basis: 100% }
[part=registration] { display: grid; gap: .6em; align-content: start }
[data-room='1'] { min-height: clamp(7.4em, 255em - 950vw, 12em) }
[data-room='2'] { min-height: max(14em - 13vw, clamp(8em, 255em - 950vw, 15em)) }
[data-room='3'] { min-height: max(20em - 30vw, clamp(8.7em, 255em - 950vw, 15em)) }
form, [part=actions] { display: flex; flex-wrap: wrap; gap: .6em; align-items: end }
label { flex: 1 1 13em; min-width: 0 }
form:has([part=news]:not([hidden])) [part=label] { flex-basis: 100% }
[part=news] { display: flex; align-items: center; min-height: 44px }
[autocomplete] { width: 100%; border: 1px solid; background: none; color: inherit }
[type=checkbox] { width: 1.2em; height: 1.2em; margin: 0; margin-inline-end: .5em; flex: none; accent-color: var(--b) }
[autocomplete], [part~=button] { box-sizing: border-box; min-height: 44px; margin: 0; padding: .4em 1em; border-radius: var(--lychgate-event-radius, .5em); font: inherit; font-size: max(1em, 16px) }
[part~=button] { display: inline-flex; align-items: center; justify-content: center; border: 1px solid #8888; background: var(--b); color: #fff; font-weight: 600; line-height: 1.3; text-decoration: none; cursor: pointer }
[part~=cancel], [part~=another] { background: none; color: inherit; font-weight: 400; border: 0; padding-inline: 0; text-decoration: underline }
[part~=button]:disabled { opacity: .6; cursor: default }
@supports (color: color(from red xyz y y y)) {
	[part~=register], [part~=plans], [part~=keep] { color: color(from var(--b) xyz calc(var(--w) * .95) var(--w) calc(var(--w) * 1.09)) }
}
:focus-visible { outline: 2px solid; outline-offset: 2px }
[tabindex]:focus { outline: none }
@media print { [part=registration], [part=calendar] { display: none } }`);

	// Whether a link for an event was asked for in this browser in the last day. Some browsers keep no such thing.
	const wasAsked = (event, at) => {
		try {
			if (at > -1) localStorage[parameter + event] = at;
			return Date.now() - localStorage[parameter + event] < 864e5;
		} catch {}
	};

	// The state whose buttons a reader gets. Who may join the waiting list does so as others register.
	const actsAs = told => told?.waiting?.join_as || told?.state;

	const all = new Set(); // elements on the page
	const tabs = new BroadcastChannel(parameter); // of the same browser
	let own;

	class LychgateEvent extends HTMLElement {
		static observedAttributes = ['event', 'map'];

		static {
			// The link of a mail was opened in another tab, or a registration cancelled there.
			tabs.onmessage = ({data}) => {
				for (const element of all) if (element.#event.id === data && element.#takesPart) element.#ask('GET');
			};
		}

		#event = {};
		#told = null; // what the edge said of the reader
		#note = ''; // instead of its message
		#sentTo = '';
		#token = ''; // of the mailed link that led here
		#news; // whether the reader wants newsletters, once they say
		#isBusy = false;
		#isLeaving = false; // asks whether to cancel
		#tries = 0;
		#reads = 0; // of the event
		#timer;
		#retry; // what the timer does
		#ticker;
		#registration = make('div', {part: 'registration'});
		#message = make('p', {part: 'message', role: 'status', tabIndex: -1});
		#controls = make('div', {part: 'actions'});
		#countdown = make('p', {part: 'countdown'});
		#links = make('ul');

		constructor() {
			super();
			this.attachShadow({mode: 'open'}).adoptedStyleSheets = [style];
			this.shadowRoot.append(make('slot')); // until it is drawn
			this.#registration.append(this.#message, this.#controls);
		}

		// What themes draw it from. It is another object after each change.
		get state() {
			const event = this.#event, told = this.#told, link = told?.platform_url || event.platform_url || '';
			return Object.freeze({event, loading: this.#isBusy, ...told, calendars: {...calendarsOf(event, link), ...told?.calendars}, message: this.#text});
		}

		get #text() {
			return this.#note || (this.#sentTo ? this.#told.labels.sent.replace('*', () => this.#sentTo) : this.#told?.message || '');
		}

		get #takesPart() { return site.registration && !!this.#event.access; }

		connectedCallback() {
			const {id} = this.dataset;
			// A card that was copied into the post of another event is its own event's.
			if (id && !document.getElementById(tag)?.textContent.includes(id)) this.setAttribute('event', id);
			all.add(this);
			place();
			if (this.dataset.sum && this.hidden) return;
			addEventListener('pageshow', this.#again);
			addEventListener('online', this.#again);
			addEventListener('visibilitychange', this.#again);
			this.#read();
		}

		// Reads the event: that of the page at once, and another one from the edge.
		async #read(tries = 0) {
			const read = ++this.#reads, name = this.getAttribute('event');
			this.#stop();
			let status = 0, event;
			try {
				if (name) {
					const response = await fetch(`${site.events}/${encodeURIComponent(name)}`, {signal: AbortSignal.timeout(3e4)});
					status = response.status;
					event = response.ok && await response.json();
				} else event = JSON.parse(document.getElementById(tag).textContent);
			} catch {}
			if (read !== this.#reads) return;
			if (!event) {
				if (status === 404) console.warn(tag + ': no event ' + name);
				if (name && (!status || status > 428)) this.#timer = setTimeout(this.#retry = () => this.#read(tries + 1), pause(tries));
				return; // there is no such event, or this is no page of one
			}
			this.#event = event;
			this.#told = null;
			this.#draw();
			this.#tick();
			if (this.#takesPart) {
				if (!name) this.#takeToken();
				this.#tell();
				// Programs that check mails open their links, too. They do not have what this browser kept.
				this.#token && wasAsked(event.id) ? this.#ask('PUT', {token: this.#token}) : this.#ask('GET');
			}
		}

		#stop() {
			clearTimeout(this.#timer);
			clearTimeout(this.#ticker);
			this.#retry = null;
		}

		disconnectedCallback() {
			all.delete(this);
			this.#reads++; // what is on its way is of no use
			this.#stop();
			removeEventListener('pageshow', this.#again);
			removeEventListener('online', this.#again);
			removeEventListener('visibilitychange', this.#again);
		}

		attributeChangedCallback(name) {
			if (!this.isConnected || !this.#reads) return;
			name === 'event' ? this.#read() : this.#event.id && this.#draw();
		}

		// Once there is a network, or the reader comes back, what they pressed is asked again.
		#again = ({persisted}) => {
			if (persisted === false || document.hidden) return;
			this.#retry ? this.#retry() : (persisted || this.#sentTo) && this.#takesPart && this.#ask('GET');
		};

		register() { return this.#press('PUT', this.#token && {token: this.#token, pressed: true}); }
		cancel() { return this.#press('DELETE'); }
		sendLink(email, name, newsletters) { return this.#press('POST', {email, name, newsletters}); }

		// Where there is a waiting list, that is what it is about.
		#press(method, body) { return this.#ask(method, this.#told?.waiting ? {...body, waiting: true} : body); }

		#tick() {
			const text = countdown(this.#event);
			this.#countdown.hidden = !text || this.#event.status === 'cancelled';
			if (this.#countdown.textContent !== text) this.#countdown.textContent = text;
			this.#ticker = setTimeout(() => this.#tick(), 6e4 - Date.now() % 6e4);
		}

		// Asks the edge, and again while it cannot say. The reader goes on waiting meanwhile.
		async #ask(method, body, isRetry) {
			if (this.#isBusy) return false;
			clearTimeout(this.#timer);
			this.#retry = null;
			this.#isBusy = true;
			this.#tell();
			const isByItself = body?.token && !body.pressed;
			let status = 0, wait, told;
			// A mail may come before the response.
			if (method === 'POST') wasAsked(this.#event.id, Date.now());
			try {
				const response = await fetch(`${site.events}/${this.#event.id}/registration?lang=${encodeURIComponent(language)}${this.#token && '&link'}`, {
					method, cache: 'no-store',
					...(body && {body: JSON.stringify(body), headers: {'Content-Type': 'application/json'}}),
					signal: AbortSignal.timeout(3e4),
				});
				status = response.status;
				wait = +response.headers.get('Retry-After');
				told = await response.json();
			} catch {}
			this.#isBusy = this.#isLeaving = false;
			this.#note = '';
			const isGuest = /^login/.test(actsAs(told));
			if (told?.state) {
				this.#told = told;
				if (status === 202) this.#sentTo = body.email;
				else if (method !== 'GET' || !isGuest) this.#sentTo = '';
				this.#tries = 0;
				if (isByItself) wasAsked(this.#event.id, 0);
				// Of a link that signs nobody in, that is said.
				if (!isGuest && (isByItself || actsAs(told) !== 'can_register')) this.#token = '';
			} else if (status === 404) {
				this.#told = {state: ''};
				this.#sentTo = '';
			} else if (told?.message && status < 500 && method !== 'GET' && !isByItself) {
				this.#note = told.message;
			} else {
				this.#note = say('again');
				if (this.isConnected) {
					this.#retry = () => this.#ask(method, body, true);
					this.#timer = setTimeout(this.#retry, pause(this.#tries++, wait || 5));
				}
			}
			const focused = this.shadowRoot.activeElement;
			this.#tell();
			// A retry leaves the reader where they are, unless that is gone.
			if (method !== 'GET' && !isRetry && !isByItself || focused && !this.shadowRoot.activeElement) this.#message.focus();
			if (told?.state && method !== 'GET') {
				tabs.postMessage(this.#event.id);
				for (const other of all) if (other !== this && other.#event.id === this.#event.id) { // on the same page
					other.#told = told;
					other.#isLeaving = false;
					other.#note = '';
					other.#tell();
				}
			}
			return !!told?.state && status > 199 && status < 300;
		}

		// The address is sent on, and loaded again, without it.
		#takeToken() {
			const url = new URL(location), token = url.searchParams.get(parameter) ?? '';
			if (/^[\w-]{1,99}$/.test(token)) this.#token = token;
			url.searchParams.delete(parameter);
			token && history.replaceState(history.state, '', url);
		}

		#draw() {
			const event = this.#event, [from] = momentsOf(event);
			const theirs = event.event_time_zone || 'UTC', here = when(event, zoneHere), there = when(event, theirs);
			const differ = here !== there && !event.all_day;
			const slot = (name, ...content) => make('slot', {name}, ...content);
			const place = event.location, map = this.getAttribute('map') || 'https://www.google.com/maps/search/?api=1&query=*';
			this.shadowRoot.replaceChildren(make('div', {part: 'event', role: 'group', ariaLabel: event.name, dir: /^(ar|he)/.test(language) ? 'rtl' : 'ltr'},
				event.status === 'cancelled' && make('p', {part: 'cancelled'}, say('cancelled')),
				slot('before'),
				event.url && slot('name', make('h2', {}, make('a', {href: event.url, part: 'name'}, event.name))),
				slot('when', (here || there) && make('div', {part: 'when'}, here && make(event.url ? 'p' : 'h2', {part: 'reader-time'}, here, differ && make('small', {}, nameOf(zoneHere, from))),
					differ && there && make('p', {part: 'event-time'}, `${there} · ${nameOf(theirs, from)}`)), this.#countdown),
				slot('place', place && make('p', {part: 'place'}, linkTo(isLink(place) ? place : map.replace('*', encodeURIComponent(place)), place, 'map'))),
				slot('online', event.status !== 'cancelled' && isLink(event.platform_url) && make('p', {part: 'online'}, linkTo(event.platform_url, say('online'), 'online-link'))),
				site.fields && slot('fields', make('dl', {part: 'fields'}, ...Object.entries(event.labels ?? {}).map(([key, label]) =>
					make('div', {part: 'field'}, make('dt', {part: 'field-label'}, label), make('dd', {part: 'field-value'}, shown(event.fields[key])))))),
				this.#takesPart && slot('registration', this.#registration),
				from && event.status !== 'cancelled' && slot('calendar', make('details', {part: 'calendar'}, make('summary', {part: 'calendar-title'}, say('calendar')), this.#links)),
				slot('after')));
			this.#link();
		}

		// A reader who is registered has other calendar links, which have the online link.
		#link() {
			const {ics, google, outlook, yahoo} = this.state.calendars;
			ics && this.#links.replaceChildren(...[[ics, 'iCal'], [google, 'Google'], [outlook, 'Outlook'], [yahoo, 'Yahoo']]
				.map(([url, text]) => make('li', {}, url === ics ? make('a', {href: url, part: 'calendar-link', download: ''}, text) : linkTo(url, text, 'calendar-link'))));
		}

		// Says how the event stands for the reader, to them and to the theme.
		#tell() {
			const told = this.#told, {state} = told ?? {};
			// What stands above all else already is not said twice.
			this.#registration.hidden = state === '' || told?.reason === 'cancelled' && this.#event.status === told.reason && !told.registered_at;
			// With a deadline, or places that are limited, there may be more to say.
			const {status, deadline, max_attendees: most} = this.#event;
			this.#registration.dataset.room = (told ? told.waiting || /^(can|login|up|registered)/.test(state) : status !== 'cancelled')
				? 1 + !!deadline + !!most : 0;
			if (this.#message.textContent !== this.#text) this.#message.textContent = this.#text;
			// What a reader types in stays.
			this.#registration.dataset.state = this.#note ? '' : state;
			const key = JSON.stringify([told, this.#sentTo, this.#isLeaving]);
			if (this.#controls.dataset.key !== key) {
				this.#controls.dataset.key = key;
				this.#controls.replaceChildren(...this.#controlsOf(told ?? {}).filter(Boolean));
				this.#link();
			}
			for (const control of this.#controls.querySelectorAll('button')) control.disabled = this.#isBusy;
			this.dispatchEvent(new CustomEvent('statechange', {bubbles: true}));
		}

		#controlsOf({waiting, ask_name: asks, newsletters: news, moved_from: before, places_left: left, platform_url: url, labels: label}) {
			const state = actsAs(this.#told);
			const button = (part, text, onclick) => make('button', {type: 'button', part: 'button ' + part, onclick}, text);
			// When and where the event was, as far as that is different now.
			const [was, is] = [before, this.#event].map(event => event ? [when(event, zoneHere), event.location] : []);
			const moved = was.filter((text, i) => text && text !== is[i]).join(' · ');
			const few = left > 0 && left <= 10 && make('p', {part: 'places'}, label.places.replace('*', left));
			if (this.#isLeaving) return [button('keep', label.keep, () => this.#leave(false)), button('cancel', label.cancel, () => this.cancel())];
			const leave = (waiting?.since || state === 'registered') && button('cancel', label.cancel, () => this.#leave(true));
			if (state === 'can_register') return [button('register', label.register, () => this.register()), leave, few];
			if (leave) return [
				moved && make('p', {part: 'moved'}, label.moved.replace('*', () => moved)),
				isLink(url) && url !== this.#event.platform_url && linkTo(url, say('online'), 'button register'),
				leave,
			];
			if (state === 'upgrade_required') return [make('a', {href: '#/portal/account/plans', part: 'button plans'}, label.plans)];
			if (!/^login/.test(state)) return [];
			if (this.#sentTo) return [this.#inbox(), button('another', label.another, () => {
				const email = this.#sentTo;
				this.#sentTo = '';
				this.#tell();
				const field = this.#controls.querySelector('[part=email]');
				field.value = email;
				field.focus();
			})];
			const input = (part, properties) => make('label', {part: 'label'}, label[part], make('input', {part, name: part, autocomplete: part, required: true, ...properties}));
			const box = news != null && make('input', {type: 'checkbox', checked: this.#news ?? news, onchange: () => this.#news = box.checked});
			const form = make('form', {part: 'form'}, asks && input('name', {maxLength: 191, required: asks === 'required'}), input('email', {type: 'email', maxLength: 254}),
				box && make('label', {part: 'news', hidden: true}, box, label.news),
				make('button', {part: 'button register'}, state.endsWith('paid') ? label.sign_in : label.register));
			// The choice comes with the first touch: what is below moves for nobody who only reads.
			box && form.addEventListener('focusin', ({target}) => box.parentNode.hidden &&= !target.name);
			form.onsubmit = submit => {
				submit.preventDefault();
				const {email, name} = Object.fromEntries(new FormData(form));
				this.sendLink(email, name, box.checked); // undefined without a box
			};
			return [form, few];
		}

		// Asks a reader who wants to cancel once more.
		#leave(isLeaving) {
			this.#isLeaving = isLeaving;
			this.#note = isLeaving ? this.#told.labels.ask : '';
			this.#tell();
			this.#controls.querySelector(isLeaving ? '[part~=keep]' : '[part~=cancel]').focus();
		}

		// The button that opens the inbox of a reader who waits for a mail.
		#inbox() {
			if (!site.button) return;
			if (!customElements.get('lychgate-inbox-button')) import(site.button).catch(() => {}); // a policy may forbid it
			const button = make('lychgate-inbox-button', {part: 'inbox'});
			button.setAttribute('recipient', this.#sentTo);
			return button;
		}
	}
	customElements.define(tag, LychgateEvent);

	// A theme that has a place for it has no other in the text, where the edge has put one. A theme that has none gets
	// it before the text of the post, as soon as that is there.
	function place() {
		const others = [...all].filter(element => element !== own && !element.getAttribute('event'));
		for (const element of others) if (element.dataset.sum) element.hidden = others.some(({dataset}) => !dataset.sum);
		if (others[0]) return own?.remove();
		if (own || !document.getElementById(tag)) return;
		const content = document.querySelector('.gh-content, .post-content, .post-full-content, .entry-content, [itemprop=articleBody]');
		const title = document.readyState === 'loading' ? null : document.querySelector('article h1, main h1, h1');
		if (!content && !title) return;
		own = document.createElement(tag);
		content ? content.prepend(own) : title.after(own);
	}
	const watch = new MutationObserver(place);
	watch.observe(document, {childList: true, subtree: true});
	document.addEventListener('DOMContentLoaded', () => {
		watch.disconnect();
		place();
	});
	place();
})();
