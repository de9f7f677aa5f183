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
		ko: '예정된 행사가 없어요.|더 보기|취소됨',
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

	// Where the reader's clock shows another time, the zone is named.
	function when(event) {
		const [from, to] = momentsOf(event);
		if (!from) return '';
		const style = {weekday: 'short', day: 'numeric', month: 'short', ...(from.getFullYear() !== new Date().getFullYear() && {year: 'numeric'})};
		const format = (timeZone, clock) => {
			try {
				return new Intl.DateTimeFormat(language, {...style, ...clock, timeZone});
			} catch {} // a time zone that this browser does not know
		};
		if (event.all_day) return format('UTC').formatRange(from, to);
		const zone = [event.event_time_zone || 'UTC', zoneHere, 'UTC'].find(zone => format(zone)), day = format(zone);
		if (to - from > 864e5) return day.formatRange(from, to);
		const clock = {hour: 'numeric', minute: '2-digit'}, there = format(zone, clock).format(from);
		return there === format(zoneHere, clock)?.format(from) && zone === (event.event_time_zone || 'UTC') ? there : format(zone, {...clock, timeZoneName: 'short'}).format(from);
	}

	// Ghost makes small pictures of its own ones, in this width with any theme. Where somebody else keeps them, there may be none.
	function picture(address) {
		const small = address.replace(/\/content\/images\/(?!size\/)/, '/content/images/size/w600/');
		const image = make('img', {part: 'image', loading: 'lazy', alt: '', src: small});
		image.onerror = () => image.getAttribute('src') === address ? image.style.visibility = 'hidden' : image.src = address;
		return image;
	}

	const style = new CSSStyleSheet();
	style.replaceSync(`
:host { display: block; margin-block: 0 1.5em; font-size: max(1em, 16px); line-height: 1.35; text-align: start; container-type: inline-size; inline-size: 100% }
:host([hidden]), [hidden] { display: none !important }
ul { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1em; align-content: start; margin: 0; padding: 0; list-style: none }
li { display: flex; gap: 1em; align-items: center; min-height: 5.35em; overflow-wrap: anywhere }
img { flex: none; width: 7.15em; height: 5.35em; object-fit: cover; border-radius: var(--lychgate-event-radius, .5em) }
div { min-width: 0; display: flow-root }
p { margin: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: .9em }
a { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; color: inherit; font-weight: 700; text-decoration: none }
a:hover { text-decoration: underline }
b { margin-inline-end: .25em }
button { min-height: 44px; margin-block-start: 1em; padding: .4em 1em; border: 1px solid; border-radius: var(--lychgate-event-radius, .5em); background: none; color: inherit; font: inherit; cursor: pointer }
:focus-visible { outline: 2px solid; outline-offset: 2px }
@container (max-width: 25em) { img { display: none } }`);

	class LychgateEvents extends HTMLElement {
		static observedAttributes = ['type', 'limit', 'past'];

		#theirs = make('slot'); // a list that the page has
		#list = make('ul', {part: 'list', role: 'list'});
		#place = make('div', {}, this.#theirs, this.#list);
		#more = make('button', {part: 'more', type: 'button', onclick: () => this.#ask()}, say('more'));
		// Place that is left over is given up where nobody sees that.
		#watch = new IntersectionObserver(([{isIntersecting}]) => isIntersecting || this.#release());
		#next;
		#asked = 0;
		#timer;

		constructor() {
			super();
			this.attachShadow({mode: 'open'}).adoptedStyleSheets = [style];
			this.shadowRoot.append(this.#place, this.#more);
		}

		connectedCallback() {
			addEventListener('pageshow', this.#again);
			this.#begin();
		}
		attributeChangedCallback() { this.#asked && this.isConnected && this.#begin(); }

		disconnectedCallback() {
			removeEventListener('pageshow', this.#again);
			this.#asked++; // what is on its way is of no use
			clearTimeout(this.#timer);
			this.#watch.disconnect();
		}

		#again = ({persisted}) => persisted && this.#begin();

		get #limit() { return Math.min(Math.max(parseInt(this.getAttribute('limit')) || 5, 1), 100); }

		// The place of all that may come is there from the start, so that nothing moves when it comes.
		#begin() {
			this.#place.style.minHeight = `calc(${this.#limit} * 6.35em - 1em)`;
			this.#list.replaceChildren();
			this.#more.hidden = !this.hasAttribute('more');
			this.#more.style.visibility = 'hidden';
			this.#next = 0;
			this.#ask();
		}

		#release() {
			this.#place.style.minHeight = '';
			this.#watch.disconnect();
		}

		// Asks the edge for more events, and again while it cannot say.
		async #ask(tries = 0) {
			const asked = ++this.#asked, type = this.getAttribute('type');
			clearTimeout(this.#timer);
			this.ariaBusy = true;
			let status = 0, told;
			try {
				const query = new URLSearchParams({limit: this.#limit, from: this.#next, ...(type && {type}), ...(this.hasAttribute('past') && {past: ''})});
				const response = await fetch(`${site.events}?${query}`, {signal: AbortSignal.timeout(3e4)});
				status = response.status;
				told = await response.json();
			} catch {}
			if (asked !== this.#asked) return; // by a later question
			this.ariaBusy = null;
			if (told?.events) this.#draw(told);
			else if (!status || status > 428) this.#timer = setTimeout(() => this.#ask(tries + 1), pause(tries));
			else this.#release();
		}

		#draw({events, next}) {
			if (this.#next) this.#release();
			else this.#place.style.minHeight = this.#place.offsetHeight + 'px'; // a list of theirs may have been longer
			this.#theirs.hidden = true;
			const isFocused = this.shadowRoot.activeElement === this.#more;
			const items = events.map(event => make('li', {part: 'item'},
				isLink(event.feature_image) && picture(event.feature_image),
				make('div', {},
					make('a', {part: 'name', href: event.url}, make('bdi', {}, event.name)),
					make('p', {part: 'when'}, event.status === 'cancelled' && make('b', {part: 'cancelled'}, say('cancelled')), ' ', when(event)),
					!isLink(event.location) && make('p', {part: 'place'}, make('bdi', {}, event.location)))));
			this.#list.append(...items);
			if (!this.#list.firstChild) this.#list.append(make('li', {}, make('slot', {name: 'none'}, !this.hasAttribute('past') && make('span', {part: 'none'}, say('none')))));
			this.#more.style.visibility = next === null ? 'hidden' : '';
			this.#next = next;
			if (isFocused) items[0]?.querySelector('a').focus();
			this.#watch.observe(this);
		}
	}
	customElements.define(tag, LychgateEvents);
})();
