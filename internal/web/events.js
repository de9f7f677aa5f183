/*! Lychgate, Apache-2.0. See docs/event_page.md */
(() => {
	const tag = 'lychgate-events';
	if (customElements.get(tag)) return;

	// The edge writes what the site has.
	const site = {events: '/ghost/lychgate/events'};

	// Of each language, in the order of names.
	const names = 'none more cancelled'.split(' ');
	const phrases = {
		__proto__: null,
		ar: 'لا توجد فعاليات قادمة.|عرض المزيد|أُلغيت',
		cs: 'Žádné nadcházející akce.|Zobrazit další|Zrušeno',
		da: 'Ingen kommende arrangementer.|Vis flere|Aflyst',
		de: 'Keine kommenden Veranstaltungen.|Mehr anzeigen|Abgesagt',
		en: 'No upcoming events.|Show more|Cancelled',
		es: 'No hay próximos eventos.|Mostrar más|Cancelado',
		fi: 'Ei tulevia tapahtumia.|Näytä lisää|Peruttu',
		fr: 'Aucun événement à venir.|Afficher plus|Annulé',
		he: 'אין אירועים קרובים.|הצגת עוד|בוטל',
		it: 'Nessun evento in programma.|Mostra altri|Annullato',
		ja: '今後のイベントはありません。|もっと見る|中止',
		ko: '예정된 행사가 없습니다.|더 보기|취소됨',
		nb: 'Ingen kommende arrangementer.|Vis flere|Avlyst',
		nl: 'Geen komende evenementen.|Meer tonen|Geannuleerd',
		pl: 'Brak nadchodzących wydarzeń.|Pokaż więcej|Odwołane',
		pt: 'Não há próximos eventos.|Mostrar mais|Cancelado',
		ru: 'Нет предстоящих мероприятий.|Показать ещё|Отменено',
		sv: 'Inga kommande evenemang.|Visa fler|Inställt',
		tr: 'Yaklaşan etkinlik yok.|Daha fazla göster|İptal edildi',
		uk: 'Немає запланованих подій.|Показати більше|Скасовано',
		zh: '暂无即将举行的活动。|显示更多|已取消',
	};
	phrases.no = phrases.nb;

	// common.js

	// Of one that is on another day in the reader's zone, or at another time, the zone is named.
	function when(event) {
		const [from, to] = momentsOf(event);
		if (!from) return '';
		const timeZone = event.all_day ? 'UTC' : event.event_time_zone || 'UTC';
		const style = {timeZone, weekday: 'short', day: 'numeric', month: 'short', ...(from.getFullYear() !== new Date().getFullYear() && {year: 'numeric'})};
		const clock = {hour: 'numeric', minute: '2-digit'};
		try {
			const day = new Intl.DateTimeFormat(language, style);
			if (event.all_day || day.format(from) !== day.format(to) && to - from > 864e5) return day.formatRange(from, to);
			const at = zone => new Intl.DateTimeFormat(language, {...style, ...clock, timeZone: zone}).format(from);
			return at(timeZone) === at(zoneHere) ? at(timeZone) : new Intl.DateTimeFormat(language, {...style, ...clock, timeZoneName: 'short'}).format(from);
		} catch {
			return ''; // a time zone that this browser does not know
		}
	}

	// Ghost makes small pictures of its own ones. Where somebody else keeps them, there may be none.
	function picture(address) {
		const small = address.replace(/\/content\/images\/(?!size\/)/, '/content/images/size/w300/');
		const image = make('img', {part: 'image', src: small, alt: '', loading: 'lazy'});
		image.onerror = () => image.getAttribute('src') === address ? image.style.visibility = 'hidden' : image.src = address;
		return image;
	}

	const style = new CSSStyleSheet();
	style.replaceSync(`
:host { display: block; margin-block: 0 1.5em; font-size: max(1em, 16px); line-height: 1.35; text-align: start; container-type: inline-size }
:host([hidden]), [hidden] { display: none !important }
ul { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1em; align-content: start; margin: 0; padding: 0; list-style: none }
li { display: flex; gap: 1em; align-items: center; min-height: 5.35em; overflow-wrap: anywhere }
img { flex: none; width: 7.15em; height: 5.35em; object-fit: cover; border-radius: var(--lychgate-event-radius, .5em) }
div { min-width: 0 }
p { margin: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: .9em }
a { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; color: inherit; font-weight: 700; text-decoration: none }
a:hover { text-decoration: underline }
b { margin-inline-end: .25em }
button { min-height: 44px; margin-block-start: 1em; padding: .4em 1em; border: 1px solid; border-radius: var(--lychgate-event-radius, .5em); background: none; color: inherit; font: inherit; cursor: pointer }
:focus-visible { outline: 2px solid; outline-offset: 2px }
@container (max-width: 25em) { img { display: none } }`);

	class LychgateEvents extends HTMLElement {
		static observedAttributes = ['type', 'limit', 'past'];

		#theirs = make('slot', {onslotchange: () => this.#list.hidden = !this.#theirs.hidden && this.#theirs.assignedElements().length > 0});
		#list = make('ul', {part: 'list', role: 'list'});
		#more = make('button', {part: 'more', type: 'button', onclick: () => this.#ask()}, say('more'));
		#next;
		#asked = 0;
		#timer;

		constructor() {
			super();
			this.attachShadow({mode: 'open'}).adoptedStyleSheets = [style];
			this.shadowRoot.append(this.#theirs, this.#list, this.#more);
		}

		connectedCallback() { this.#begin(); }
		attributeChangedCallback() { this.#asked && this.isConnected && this.#begin(); }

		disconnectedCallback() {
			this.#asked++;
			clearTimeout(this.#timer);
		}

		get #limit() { return Math.min(Math.max(parseInt(this.getAttribute('limit')) || 5, 1), 100); }

		// The place of all that may come is there from the start, so that nothing moves when it comes. A list that the page
		// has in the element stands there until then.
		#begin() {
			this.#list.style.minHeight = `calc(${this.#limit} * 6.35em - 1em)`;
			this.#list.replaceChildren();
			this.#more.hidden = !this.hasAttribute('more');
			this.#more.style.visibility = 'hidden';
			this.#next = 0;
			this.#ask();
		}

		// Asks the edge for more events, and again while it cannot say.
		async #ask(tries = 0) {
			const asked = ++this.#asked, type = this.getAttribute('type');
			clearTimeout(this.#timer);
			let status = 0, told;
			try {
				const query = new URLSearchParams({limit: this.#limit, from: this.#next, ...(type && {type}), ...(this.hasAttribute('past') && {past: ''})});
				const response = await fetch(`${site.events}?${query}`, {signal: AbortSignal.timeout(3e4)});
				status = response.status;
				told = await response.json();
			} catch {}
			if (asked !== this.#asked) return; // by a later question
			if (told?.events) this.#draw(told);
			else if (!status || status > 428) this.#timer = setTimeout(() => this.#ask(tries + 1), Math.min(5 * 2 ** tries, 60) * 1e3 * (1 + Math.random() / 4));
		}

		#draw({events, next}) {
			if (this.#list.hidden) this.#list.style.minHeight = this.offsetHeight + 'px';
			this.#theirs.hidden = true;
			this.#list.hidden = false;
			const isFocused = this.shadowRoot.activeElement === this.#more;
			const items = events.map(event => make('li', {part: 'item'},
				isLink(event.feature_image) && picture(event.feature_image),
				make('div', {},
					make('a', {part: 'name', href: event.url}, make('bdi', {}, event.name)),
					make('p', {part: 'when'}, event.status === 'cancelled' && make('b', {part: 'cancelled'}, say('cancelled')), ' ', when(event)),
					!isLink(event.location) && make('p', {part: 'place'}, make('bdi', {}, event.location)))));
			this.#list.append(...items);
			if (!this.#list.firstChild && !this.hasAttribute('past')) this.#list.append(make('li', {}, make('slot', {name: 'none'}, make('span', {part: 'none'}, say('none')))));
			this.#more.style.visibility = next === null ? 'hidden' : '';
			this.#next = next;
			if (isFocused) items[0]?.querySelector('a').focus();
		}
	}
	customElements.define(tag, LychgateEvents);
})();
