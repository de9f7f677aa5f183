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

	// Whatever goes wrong, there is no provider.
	async function ask(domain, endpoint) {
		let provider;
		try {
			const response = await fetch(`${endpoint}?domain=${encodeURIComponent(domain)}`, {
				headers: {Accept: 'application/json'},
				credentials: 'omit',
				referrerPolicy: 'no-referrer',
				signal: AbortSignal.timeout(3000),
			});
			if (response.ok) ({provider} = await response.json());
		} catch {}
		answers.set(domain, Object.keys(list).includes(provider) ? provider : null);
	}

	// Ends no part of a URL, nor of a webmail's search.
	const encode = text => encodeURIComponent(text.replace(/\p{Cs}/gu, '')).replace(/[!'()]/g, escape);

	function linkTo(provider, domain, recipient, sender) {
		const [page, search, app] = webmails[provider];
		// Microsoft keeps people's own accounts apart from companies'.
		const personal = /^(outlook|hotmail|live|msn|passport)\.[a-z.]{2,6}$/.test(domain);
		const url = 'https://' + ((personal ? page.replace('office', 'live') : page) + (sender && search))
			.replace('{to}', encode(recipient)).replace('{from}', encode(sender));
		return android && app
			? `intent:#Intent;action=android.intent.action.MAIN;category=android.intent.category.LAUNCHER;package=${app};S.browser_fallback_url=${encode(url)};end`
			: url;
	}

	// No style element: policies may forbid it.
	const style = new CSSStyleSheet();
	style.replaceSync(`
:host { display: block; min-height: max(2.75em, 44px) }
:host([hidden]) { display: none }
:host([floating]) { position: absolute; z-index: 2; top: 100%; inset-inline: 0; min-height: 0; pointer-events: none }
:host([floating][provider]) { padding-top: .75em }
a {
	box-sizing: border-box; display: inline-flex; align-items: center; gap: .6em; min-height: max(2.75em, 44px); padding: .5em 1.1em;
	border: 1px solid transparent; border-radius: var(--lychgate-inbox-radius, .5em);
	background: var(--lychgate-inbox-background, CanvasText); color: var(--lychgate-inbox-color, Canvas);
	font-weight: 600; line-height: 1.2; text-decoration: none; pointer-events: auto;
}
a::before {
	content: ""; box-sizing: border-box; width: 1.3em; height: 1em; border: .1em solid; border-radius: .2em;
	background: conic-gradient(from -53deg at 50% 65%, currentColor 106deg, #0000 0);
}
a:hover { opacity: .85 }
a:focus-visible { outline: .15em solid CanvasText; outline-offset: .15em; box-shadow: 0 0 0 .15em Canvas }
@media (forced-colors: active) { a { background: ButtonFace; color: ButtonText; border-color: ButtonText } a::before { content: none } }`);

	const attributes = ['recipient', 'sender', 'endpoint', 'text'];

	class InboxButton extends HTMLElement {
		static observedAttributes = [...attributes, 'hold'];

		static use(more) {
			Object.assign(settings, more);
			if ('forms' in settings) watchForms();
		}

		#status = document.createElement('div');
		#link = document.createElement('a');
		#domain;
		#timer;

		constructor() {
			super();
			const root = this.attachShadow({mode: 'open'});
			root.adoptedStyleSheets = [style];
			root.append(this.#status);
			// Is read out when the button comes.
			this.#status.setAttribute('role', 'status');
			Object.assign(this.#link, {part: 'button', target: '_blank', rel: 'noopener noreferrer', dir: 'auto'});
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
			this.#find();
		}

		disconnectedCallback() {
			clearTimeout(this.#timer);
		}

		attributeChangedCallback(name, before, now) {
			if (!this.isConnected || before === now) return;
			name === 'recipient' ? this.#find() : this.#show();
		}

		#find() {
			const domain = this.#domain = domainOf(this.recipient);
			clearTimeout(this.#timer);
			this.#show();
			if (domain) this.#timer = setTimeout(async () => {
				if (!answers.has(domain)) answers.set(domain, ask(domain, this.endpoint || folder + '/inbox-provider'));
				await answers.get(domain);
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
			if (link.textContent !== text) link.textContent = text;
			if (!link.parentNode) this.#status.append(link);
			this.setAttribute('provider', provider);
		}
	}

	for (const name of attributes) {
		Object.defineProperty(InboxButton.prototype, name, {
			get() { return this.getAttribute(name) ?? settings[name] ?? ''; },
			set(value) { this.setAttribute(name, value ?? ''); },
		});
	}
	customElements.define(tag, InboxButton);

	// Ghost's forms: asked while the reader types, shown when the link is sent.
	const watched = new WeakSet();
	const sent = form => form.classList.contains('success');
	const styleOf = element => getComputedStyle(element).position;

	function watch({target, type}) {
		const form = target.closest?.(settings.forms || 'form[data-members-form]');
		const field = form?.querySelector('[data-members-email]');
		if (!field) return;
		let button = form.querySelector(tag);
		if (!button) {
			// Below the form, where it moves nothing, if that is possible.
			const isStatic = styleOf(form) === 'static';
			if (!isStatic || [...form.querySelectorAll('*')].every(element => styleOf(element) !== 'absolute')) {
				if (isStatic) form.style.position = 'relative';
				button = document.createElement(tag);
				button.setAttribute('floating', '');
			}
			form.append(button ??= Object.assign(document.createElement(tag), {style: 'min-height: 0'}));
		}
		const hold = () => form.querySelector(tag)?.toggleAttribute('hold', !sent(form));
		hold();
		if (!watched.has(form)) new MutationObserver(hold).observe(form, {attributeFilter: ['class']});
		watched.add(form);
		// What is typed after the link was sent is another address.
		if (type !== 'input' || !sent(form)) button.recipient = field.value;
	}

	let watching = ios;
	function watchForms() {
		if (watching) return;
		watching = true;
		for (const type of ['input', 'submit']) document.addEventListener(type, watch, true);
		for (const target of document.querySelectorAll(settings.forms || 'form[data-members-form]')) {
			// Before the script was here.
			if (sent(target)) watch({target});
		}
	}
	InboxButton.use(settings);
})();
