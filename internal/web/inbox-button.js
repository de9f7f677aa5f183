/*! Lychgate, Apache-2.0. See docs/inbox_button.md */
(() => {
	const tag = 'lychgate-inbox-button';
	// Not whatever a page has called currentScript. A module has none.
	const script = [document.currentScript, document.querySelector('script[src*="inbox-button.js"]')]
		.find(element => element instanceof HTMLScriptElement);
	const settings = {...script?.dataset};
	const other = customElements.get(tag);
	// The page has the script twice.
	if (other) return other.use(settings);

	// From go generate: names, domains that need no request.
	const list = {
		gmail: ['Gmail', 'gmail.com googlemail.com google.com'],
		yahoo: ['Yahoo Mail', 'yahoo.com myyahoo.com yahoo.co.uk yahoo.fr yahoo.it ymail.com rocketmail.com'],
		outlook: ['Outlook', 'outlook.com live.com live.de hotmail.com hotmail.co.uk hotmail.de msn.com passport.com passport.net'],
		proton: ['Proton Mail', 'proton.me pm.me protonmail.com protonmail.ch'],
		icloud: ['iCloud Mail', 'icloud.com me.com mac.com'],
		hey: ['HEY', 'hey.com'],
		aol: ['AOL Mail', 'aol.com'],
		mailru: ['Mail.ru', 'mail.ru'],
		feedbin: ['Feedbin', 'feedb.in'],
	};

	// Web page, search for a sender, Android app.
	const webmails = {
		gmail: ['mail.google.com/mail/?authuser={to}', '#search/from%3A({from})+in%3Aanywhere+newer_than%3A1h', 'com.google.android.gm'],
		yahoo: ['mail.yahoo.com/', 'd/search/keyword=from:{from}', 'com.yahoo.mobile.client.android.mail'],
		outlook: ['outlook.office.com/mail/?login_hint={to}', '', 'com.microsoft.office.outlook'],
		proton: ['mail.proton.me/', 'u/0/all-mail#from={from}', 'ch.protonmail.android'],
		icloud: ['www.icloud.com/mail', ''],
		hey: ['app.hey.com/topics/everything', '', 'com.basecamp.hey'],
		aol: ['mail.aol.com/', 'd/search/keyword=from:{from}', 'com.aol.mobile.aolapp'],
		mailru: ['e.mail.ru/', 'search/?q_from={from}', 'ru.mail.mailapp'],
		feedbin: ['feedbin.com/', ''],
	};

	const phrases = {
		__proto__: null,
		ar: 'افتح *', cs: 'Otevřít *', da: 'Åbn *', de: '* öffnen', en: 'Open *', es: 'Abrir *', fi: 'Avaa *',
		fr: 'Ouvrir *', he: 'פתיחת *', it: 'Apri *', ja: '*を開く', ko: '* 열기', nb: 'Åpne *', nl: '* openen', no: 'Åpne *',
		pl: 'Otwórz *', pt: 'Abrir *', ru: 'Открыть *', sv: 'Öppna *', tr: '* uygulamasını aç', uk: 'Відкрити *', zh: '打开 *',
	};

	const {userAgent, platform, maxTouchPoints} = navigator;
	// An iPad says that it is a Mac, but no Mac has a touch screen.
	const ios = /iP(hone|ad|od)/.test(userAgent + platform) || (/^Mac/.test(platform) && maxTouchPoints > 1);
	// An app's web view (wv) opens no other app.
	const android = /Android(?!.*; wv\))/.test(userAgent);

	const [, folder = '/ghost'] = /(.*)\/lychgate\/inbox-button\.js/.exec(script?.src) || [];

	// Of each domain: its provider, null, or a promise while it is asked for.
	const answers = new Map();
	for (const provider in list) {
		for (const domain of list[provider][1].split(' ')) answers.set(domain, provider);
	}

	function domainOf(address) {
		const [, domain] = /.@([^\s@/:?#%\\]+)\s*$/.exec(address) || [];
		try {
			// Lower case, xn-- for other alphabets.
			const {hostname} = new URL('http://' + domain);
			if (!ios && /^(?!.{254})([a-z\d]([a-z\d-]{0,61}[a-z\d])?\.)+[a-z][a-z\d-]{0,61}[a-z\d]$/.test(hostname)) return hostname;
		} catch {}
	}

	// Lookups under way when the reader left for another page get no answer after
	// the page comes back from the back-forward cache.
	addEventListener('pageshow', ({persisted}) => {
		for (const [domain, answer] of answers) if (persisted && answer instanceof Promise) answers.delete(domain);
	});

	// Whatever goes wrong, there is no provider. It is undefined if that is no
	// answer, because the lookup was broken off.
	async function ask(domain, endpoint) {
		let provider;
		try {
			const response = await fetch(`${endpoint}?domain=${encodeURIComponent(domain)}`, {
				headers: {Accept: 'application/json'},
				credentials: 'omit',
				referrerPolicy: 'no-referrer',
				signal: AbortSignal.timeout(3000),
			});
			if (response.ok) provider = (await response.json())?.provider;
		} catch (error) {
			if (error?.name !== 'SyntaxError') return;
		}
		return Object.keys(list).includes(provider) ? provider : null;
	}

	// Ends no part of a URL, nor of a webmail's search.
	const encode = text => encodeURIComponent(text.replace(/\p{Cs}/gu, '')).replace(/[!'()]/g, escape);

	function linkTo(provider, domain, recipient, sender) {
		const [page, search, app] = webmails[provider];
		// Microsoft keeps people's own accounts apart from companies'.
		const personal = /^(outlook|hotmail|live|msn|passport)\.[a-z.]{2,6}$/.test(domain);
		let link = (personal ? page.replace('office', 'live') : page) + (sender && search);
		try {
			[, link] = /^https:\/\/(.+)/.exec(JSON.parse(settings.links)[provider]);
		} catch {}
		// The account of jane+news@ is jane@.
		const url = 'https://' + link.replace('{to}', encode(recipient.replace(/^([^+"]+)\+.*@/, '$1@'))).replace('{from}', encode(sender));
		return android && app
			? `intent:#Intent;action=android.intent.action.MAIN;category=android.intent.category.LAUNCHER;package=${app};S.browser_fallback_url=${encode(url)};end`
			: url;
	}

	// No style element: policies may forbid it. --b is the background. --w is 1
	// where white on it has more contrast than black (WCAG), else 0. --e is an outer
	// ring, since an edge in one colour may be lost on some background.
	const style = new CSSStyleSheet();
	style.replaceSync(`
:host { display: block; min-height: max(2.75em, 44px) }
:host([hidden]) { display: none }
:host([floating]) {
	position: absolute !important; inset: auto !important; z-index: 9 !important; min-height: 0 !important;
	margin: 0 !important; padding: 0 !important; border: 0 !important; float: none !important; pointer-events: none !important;
}
:host([floating]), :host([below]) { display: block !important }
a {
	--b: var(--lychgate-inbox-background, #000);
	--w: clamp(0, (.179 - y) * 1e6, 1);
	--e: 0 0 #0000;
	box-sizing: border-box; display: inline-flex; align-items: center; gap: .6em; max-width: 100%;
	min-height: max(2.75em, 44px); padding: .5em 1.1em;
	border: 2px solid; border-radius: var(--lychgate-inbox-radius, .5em); box-shadow: var(--e);
	background: var(--b); color: var(--lychgate-inbox-color, #fff);
	font-weight: 600; line-height: 1.2; letter-spacing: normal; text-transform: none; text-indent: 0;
	text-decoration: none; text-shadow: none; -webkit-text-fill-color: currentColor; writing-mode: horizontal-tb;
	white-space: nowrap; pointer-events: auto;
}
@supports (color: color(from red xyz y y y)) {
	a {
		--e: 0 0 0 1px color(from var(--lychgate-inbox-background, #0000) xyz calc(1 - var(--w)) calc(1 - var(--w)) calc(1 - var(--w)) / calc(alpha * .55));
		color: var(--lychgate-inbox-color, color(from var(--b) xyz calc(var(--w) * .95) var(--w) calc(var(--w) * 1.09)));
	}
}
:host([floating]) [role], :host([below]) [role] { font-size: max(1em, 14px) }
:host([provider][floating]) [role], :host([below]) [role] { padding-top: 12px }
:host([floating]) a { box-shadow: var(--e), 0 .2em .8em #0006 }
span { overflow: hidden; text-overflow: ellipsis }
svg { flex: none; width: 1.3em; height: 1em; fill: none; stroke: currentColor; stroke-width: 2 }
a:hover { text-decoration: underline }
a:focus-visible { outline: 2px solid #000; box-shadow: 0 0 0 4px #fff !important }
@media (forced-colors: active) { a { background: ButtonFace; color: ButtonText; border-color: ButtonText } svg { display: none } }
@media print { :host, :host([floating]), :host([below]) { display: none !important } }`);

	const attributes = ['recipient', 'sender', 'endpoint', 'text'];

	class InboxButton extends HTMLElement {
		static observedAttributes = [...attributes, 'hold'];

		static use(more) {
			Object.assign(settings, more);
			if ('forms' in settings) watchForms();
		}

		#status = document.createElement('div');
		#link = document.createElement('a');
		#text = document.createElement('span');
		#domain;
		#timer;
		#lost; // the lookup had no answer

		constructor() {
			super();
			const root = this.attachShadow({mode: 'open'});
			root.adoptedStyleSheets = [style];
			root.append(this.#status);
			// Is read out when the button comes.
			this.#status.setAttribute('role', 'status');
			Object.assign(this.#link, {target: '_blank', rel: 'noopener noreferrer', dir: 'auto'});
			const icon = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
			icon.setAttribute('viewBox', '0 0 26 20');
			icon.setAttribute('aria-hidden', 'true');
			icon.setAttribute('part', 'icon');
			icon.append(document.createElementNS(icon.namespaceURI, 'path'));
			icon.firstChild.setAttribute('d', 'M1 1h24v18H1zl12 10L25 1');
			this.#link.append(icon, this.#text);
		}

		connectedCallback() {
			for (const name of attributes) {
				if (!Object.hasOwn(this, name)) continue;
				// Set before this class was there.
				const value = this[name];
				delete this[name];
				this[name] = value;
			}
			this.hidden ||= ios;
			this.#domain ? this.#show() : this.#find();
			addEventListener('pageshow', this.#again);
		}

		disconnectedCallback() {
			clearTimeout(this.#timer);
			this.#domain = '';
			removeEventListener('pageshow', this.#again);
		}

		#again = ({persisted}) => persisted && this.#find();

		attributeChangedCallback(name, before, now) {
			// A form's button looks up before it is on the page.
			if (!this.isConnected && !this.hasAttribute('hold') || before === now && !(name === 'recipient' && this.#lost)) return;
			name === 'recipient' ? this.#find() : this.#show();
		}

		#find() {
			const domain = this.#domain = domainOf(this.recipient);
			clearTimeout(this.#timer);
			this.#lost = false;
			this.#show();
			if (domain) this.#timer = setTimeout(async () => {
				if (!answers.has(domain)) answers.set(domain, ask(domain, this.endpoint || folder + '/inbox-provider'));
				const asked = answers.get(domain), answer = await asked;
				this.#lost = answer === undefined;
				if (answers.get(domain) === asked) answer === undefined ? answers.delete(domain) : answers.set(domain, answer);
				this.#show();
			}, answers.has(domain) ? 0 : 400);
		}

		#show() {
			const provider = answers.get(this.#domain), link = this.#link;
			if (!list[provider] || this.hasAttribute('hold')) {
				link.remove();
				this.removeAttribute('provider');
				return;
			}
			link.href = linkTo(provider, this.#domain, this.recipient.trim(), this.sender.trim());
			const lang = [document.documentElement.lang, navigator.language]
				.map(lang => lang.toLowerCase().split(/[-_]/)[0]).find(lang => phrases[lang]) || 'en';
			this.text ? link.removeAttribute('lang') : link.lang = lang;
			const text = (this.text || phrases[lang]).replace('*', list[provider][0]);
			if (this.#text.textContent !== text) this.#text.textContent = text;
			link.part = 'button ' + provider;
			this.setAttribute('exportparts', 'icon,button,' + provider);
			if (!link.parentNode) this.#status.append(link);
			this.setAttribute('provider', provider);
		}
	}

	for (const name of attributes) {
		Object.defineProperty(InboxButton.prototype, name, {
			get() { return this.getAttribute(name) ?? settings[name] ?? ''; },
			set(value) { value == null ? this.removeAttribute(name) : this.setAttribute(name, value); },
		});
	}
	customElements.define(tag, InboxButton);

	// A form's button is in a shadow root around the form: there no selector of the
	// theme's counts it or reaches it, and nothing makes room for it.
	const roots = new WeakMap(), through = new CSSStyleSheet();
	// A theme's box-sizing: inherit must find the parent's value in the slot.
	through.replaceSync('slot { all: inherit; display: contents; animation: none; transition: none }');
	function makeRoot({parentElement: parent}) {
		// Custom elements want their own, and nothing else has slots.
		if (roots.has(parent) || parent.shadowRoot || /-/.test(parent.localName) || [...parent.children].some(child => child.slot)) return;
		try {
			const root = parent.attachShadow({mode: 'open'});
			root.adoptedStyleSheets = [through];
			root.append(document.createElement('slot'));
			roots.set(parent, root);
		} catch {}
	}

	function attach(button, form) {
		makeRoot(form);
		const parent = form.parentElement, end = new AbortController(), {style} = button;
		const boxOf = element => element.getBoundingClientRect();
		button.setAttribute('floating', '');
		(roots.get(parent) ?? parent).append(button);

		function place() {
			if (end.signal.aborted) return;
			if (form.parentElement !== parent || !form.isConnected) {
				sizes.disconnect();
				changes.disconnect();
				end.abort();
				button.remove();
				return form.isConnected && attach(button, form);
			}
			style.width = style.translate = style.visibility = '';
			button.removeAttribute('below');
			button.setAttribute('floating', '');
			const box = boxOf(form);
			const scale = boxOf(button).width / button.offsetWidth || 1;
			// Where the form is hidden, there is nothing to be below.
			if (box.width) style.width = box.width / scale + 'px';
			const own = boxOf(button);
			const move = y => {
				if (box.width) style.translate = `${(box.left - own.left) / scale}px ${(y - own.top) / scale}px`;
			};
			// Ghost's notice may be longer than its form.
			const spill = getComputedStyle(form).overflowY === 'visible' ? Math.min(form.scrollHeight - form.clientHeight, 99) : 0;
			move(box.bottom + spill * scale);
			const {bottom} = boxOf(button);
			let stuck = /hidden|clip/.test(getComputedStyle(document.body).overflowY + getComputedStyle(document.documentElement).overflowY);
			for (let outer = form; outer && outer !== document.body; outer = outer.parentElement) {
				const {overflowY, position} = getComputedStyle(outer), frame = boxOf(outer);
				stuck ||= position === 'fixed';
				if (outer === form || overflowY === 'visible' || frame.bottom >= bottom && frame.top < bottom) continue;
				if (/auto|scroll/.test(overflowY) && outer.scrollHeight > bottom - frame.top + outer.scrollTop + 1) {
					// Scrolled away, with the form.
					if (box.bottom > frame.bottom || box.bottom < frame.top) style.visibility = 'hidden';
					break;
				}
				if (frame.bottom >= bottom) continue;
				// What would be cut off makes room for itself.
				style.width = style.translate = '';
				button.removeAttribute('floating');
				button.setAttribute('below', '');
				return;
			}
			// Where nobody can scroll to it, it is above the form.
			if (stuck && bottom > innerHeight && box.top > own.height) move(box.top - own.height - 12);
		}
		// In a frame of its own, as it changes sizes.
		const sizes = new ResizeObserver(() => requestAnimationFrame(place)), changes = new MutationObserver(place);
		for (const element of [...parent.children, parent, document.body]) sizes.observe(element);
		changes.observe(button, {attributeFilter: ['provider']});
		changes.observe(parent, {childList: true});
		document.addEventListener('scroll', ({target}) => {
			if (target === document ? /fixed|sticky/.test(getComputedStyle(form).position) : target.contains(form)) place();
		}, {capture: true, passive: true, signal: end.signal});
	}

	// Ghost's forms: asked while the reader types, shown when the link is sent.
	const buttons = new WeakMap();
	const watched = new WeakSet();
	const buttonOf = form => form.querySelector(tag) ?? buttons.get(form);
	const sent = form => form.classList.contains('success');

	function watch({target, type}) {
		const form = target.closest?.(settings.forms || 'form[data-members-form]');
		const field = form?.querySelector('[data-members-email]');
		if (!field) return;
		if (!buttonOf(form)) buttons.set(form, document.createElement(tag));
		const button = buttonOf(form);
		const hold = () => buttonOf(form)?.toggleAttribute('hold', !sent(form));
		hold();
		if (!watched.has(form)) new MutationObserver(hold).observe(form, {attributeFilter: ['class']});
		watched.add(form);
		// What is typed after the link was sent is another address.
		if (type !== 'input' || !sent(form)) button.recipient = field.value;
		// Not while a reader types, which it might disturb.
		if (type !== 'input' && !button.isConnected) attach(button, form);
	}

	let watching = ios;
	function watchForms() {
		if (watching) return;
		watching = true;
		for (const type of ['input', 'submit']) document.addEventListener(type, watch, true);
		for (const target of document.querySelectorAll(settings.forms || 'form[data-members-form]')) {
			// Now, since the theme's animations around it start anew with that.
			if (!target.querySelector(tag)) makeRoot(target);
			// Before the script was here.
			if (sent(target)) watch({target});
		}
	}
	InboxButton.use(settings);
})();
