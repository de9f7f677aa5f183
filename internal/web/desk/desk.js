// The script of the desk. Every page works without it.

// textOf never takes text for markup, and cuts it after so many UTF-16 units.
const textOf = (name, text, longest = 400) => {
	const element = document.createElement(name);
	const whole = String(text);
	element.textContent = whole.length > longest ? whole.slice(0, longest) + '…' : whole;
	return element;
};

// noticeOf makes the notice at the top of a page. The parts are text and elements.
const noticeOf = (isProblem, ...parts) => {
	const notice = document.createElement('div');
	notice.className = isProblem ? 'notice problem' : 'notice';
	notice.setAttribute('role', 'status');
	notice.tabIndex = -1;
	const paragraph = document.createElement('p');
	paragraph.append(...parts);
	notice.append(paragraph);
	return notice;
};

// refusalOf makes a notice of the message that a page has in place of its content, null if there is
// none.
const refusalOf = page => {
	const message = page.querySelector('.message');
	if (!message) return null;
	const notice = noticeOf(!message.classList.contains('kept'), ...message.childNodes);
	const signIn = page.querySelector('.sign-in');
	if (signIn) notice.append(signIn);
	return notice;
};

// formatIn formats times in the time zone of the page that an element is in, or where the browser is if the page has none. A
// browser that does not know the zone has UTC, and says so.
const formatIn = (element, style) => {
	const timeZone = element?.closest('desk-page')?.getAttribute('zone') ?? undefined;
	try {
		return new Intl.DateTimeFormat('en-GB', {...style, hourCycle: 'h23', timeZone});
	} catch {
		return new Intl.DateTimeFormat('en-GB', {...style, hourCycle: 'h23', timeZone: 'UTC', timeZoneName: 'short'});
	}
};

// showTimes writes times as they are in the time zone of the page.
const showTimes = root => {
	const times = root.querySelectorAll('time');
	if (!times.length) return; // what follows is slow
	const format = formatIn(root, {day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit'});
	for (const time of times) {
		const at = new Date(time.dateTime);
		if (!Number.isNaN(at.getTime())) {
			time.title = time.dateTime;
			time.textContent = format.format(at);
		}
	}
};

// working says that something is under way, until the function that it returns is called.
// Only what takes long enough to be wondered at is said.
const working = () => {
	const said = document.getElementById('working');
	const timer = setTimeout(() => { said.textContent = 'Working…'; }, 300);
	return () => {
		clearTimeout(timer);
		said.textContent = '';
	};
};

// announce has a text read out.
const announce = text => { document.getElementById('said').textContent = text; };

// leadBack has the link to the platform's admin lead to where somebody was in this tab.
const leadBack = () => {
	try {
		const link = document.querySelector('header .back'), place = sessionStorage.getItem('lychgate-admin');
		if (link && place?.length < 500 && /^#\/(?!sign|setup|reset)/.test(place)) link.hash = place;
	} catch {} // the link leads to its start
};
leadBack();

// desk-page sends forms with data-quick without leaving the page, unless a button with data-leave
// sends them. What it has then is what the server's answer has.
customElements.define('desk-page', class extends HTMLElement {
	connectedCallback() {
		showTimes(this);
		this.querySelector('h2[data-focus]')?.focus(); // what is chosen comes after it
		this.addEventListener('change', event => this.#offer(event.target));
		this.addEventListener('submit', event => {
			if (event.target.matches('form[data-quick]') && !event.submitter?.hasAttribute('data-leave')) {
				event.preventDefault();
				this.send(event.target.action, new FormData(event.target, event.submitter));
			}
		});
	}

	// offer fills in the date that goes with what was chosen, unless somebody has typed another one.
	#offer(select) {
		const date = this.querySelector(`#${select.dataset.dates ?? 'none'}`);
		if (!date || ![...select.options].some(option => option.dataset.first === date.value)) return;
		date.value = select.selectedOptions[0].dataset.first;
	}

	// send sends the fields of a form, unless another is on its way.
	async send(address, fields) {
		if (this.ariaBusy) return;
		const hasFile = fields instanceof FormData && [...fields.values()].some(value => value instanceof File);
		await this.#ask(address, {method: 'POST', body: hasFile ? fields : new URLSearchParams(fields)});
	}

	// refresh asks for the page again, and puts a notice on it.
	refresh(notice) {
		return this.#ask(location.pathname, {}, notice);
	}

	async #ask(address, options, notice) {
		this.ariaBusy = 'true';
		const end = working();
		try {
			const response = await fetch(address, {...options, headers: {Accept: 'text/html'}});
			const answer = new DOMParser().parseFromString(await response.text(), 'text/html');
			const fresh = answer.querySelector('desk-page');
			if (!fresh) throw new Error(`The server answered ${response.status}. Try again.`);
			const refusal = refusalOf(fresh);
			if (refusal) { // what was typed stays
				notice ??= refusal;
			} else {
				this.replaceChildren(...fresh.childNodes);
				if (fresh.hasAttribute('zone')) this.setAttribute('zone', fresh.getAttribute('zone'));
				else this.removeAttribute('zone');
				document.title = answer.title;
				history.replaceState(null, '', response.redirected ? response.url : address);
				showTimes(this);
			}
		} catch (error) {
			notice ??= noticeOf(true, error instanceof TypeError ? 'The server cannot be reached. Try again.' : error.message);
		} finally {
			this.ariaBusy = null;
			end();
		}
		this.say(notice);
	}

	// say shows a notice, if there is one, and moves the focus to what is new.
	say(notice) {
		if (notice) {
			this.querySelectorAll('.notice').forEach(old => old.remove());
			this.querySelector('#told')?.remove();
			this.querySelector('h1').after(notice);
		}
		// What has the focus is read out; so is what was said, wherever that goes.
		announce(this.querySelector('[data-focus]') ? this.querySelector('.notice p')?.textContent ?? '' : '');
		(this.querySelector('[data-focus]') ?? this.querySelector('.notice') ?? this.querySelector('h1')).focus();
	}
});

const maxAsks = 60; // for what is pending, while nobody leaves the page and comes back

// desk-live is a part of a page that changes by itself while it has an element with data-pending, of what the platform does not have yet. The
// page is asked for again after 1, 2, 3, 4, 5, 5 … seconds, and each such part is then what the answer has. That nothing is
// pending any more is said: by the part told, or by what data-pending says.
customElements.define('desk-live', class extends HTMLElement {
	#asks = 0;
	#timer = 0;

	connectedCallback() {
		document.addEventListener('visibilitychange', this.#return);
		this.#wait();
	}

	disconnectedCallback() {
		clearTimeout(this.#timer);
		document.removeEventListener('visibilitychange', this.#return);
	}

	#return = () => {
		this.#asks = 0;
		this.#wait();
	};

	#wait() {
		clearTimeout(this.#timer);
		if (!this.isConnected || !this.querySelector('[data-pending]') || this.#asks >= maxAsks || document.visibilityState === 'hidden') return;
		this.#timer = setTimeout(() => this.#ask(), 1000 * Math.min(++this.#asks, 5));
	}

	async #ask() {
		const page = this.closest('desk-page'), pending = this.querySelector('[data-pending]').dataset.pending;
		const event = page.querySelector('desk-event'), revision = event?.revision;
		try {
			const response = await fetch(location.href, {headers: {Accept: 'text/html'}, signal: AbortSignal.timeout(10000)});
			const answer = new DOMParser().parseFromString(await response.text(), 'text/html');
			if (this.isConnected && !page.ariaBusy && answer.getElementById(this.id)) {
				const told = sayingOf(page.querySelector('#told'));
				renew(page, answer);
				event?.renew(answer.querySelector('desk-event'), revision);
				if (!this.querySelector('[data-pending]')) this.#say(pending, told);
			}
		} catch {} // it is asked again
		this.#wait();
	}

	#say(pending, told) {
		const now = sayingOf(this.closest('desk-page').querySelector('#told'));
		if (now === told && pending) this.prepend(Object.assign(textOf('p', pending), {className: 'arrived'}));
		announce(now === told ? pending || sayingOf(this) : now);
	}
});

const sayingOf = element => element?.textContent.trim() ?? '';

// renew puts the live parts of an answer onto a page. The focus stays on a button or link that is there again.
const renew = (page, answer) => {
	for (const part of page.querySelectorAll('desk-live')) {
		const fresh = answer.getElementById(part.id);
		if (!fresh) continue;
		showTimes(fresh);
		if (fresh.innerHTML === part.innerHTML) continue;
		const focused = part.contains(document.activeElement) ? document.activeElement.outerHTML : '';
		part.replaceChildren(...fresh.childNodes);
		if (focused) [...part.querySelectorAll('a, button')].find(other => other.outerHTML === focused)?.focus();
	}
};

// desk-search answers a search while somebody types. What it has found stands in elements with
// data-found, and what it says of that in one of the class found.
customElements.define('desk-search', class extends HTMLElement {
	#search = null; // the AbortController of the search that is under way
	#timer = 0;

	connectedCallback() {
		const form = this.querySelector('form[role=search]');
		form?.addEventListener('input', event => {
			this.#begin();
			this.#timer = setTimeout(() => this.#run(form), event.target.localName === 'select' ? 0 : 150);
		});
		form?.addEventListener('submit', event => {
			event.preventDefault();
			this.#begin();
			this.#run(form);
		});
		if (this.hasAttribute('focus')) form?.elements.q.focus();
		const typed = form?.elements.q; // before this script was there
		if (typed && typed.value !== typed.defaultValue) form.requestSubmit();
	}

	disconnectedCallback() {
		clearTimeout(this.#timer);
		this.#search?.abort();
	}

	// begin ends the search before. What it has found is not what is looked for any more:
	// it cannot be chosen.
	#begin() {
		clearTimeout(this.#timer);
		this.#search?.abort();
		this.#search = new AbortController();
		this.#found().forEach(part => { part.inert = true; });
	}

	async #run(form) {
		const {signal} = this.#search;
		const end = working();
		signal.addEventListener('abort', end);
		const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
		try {
			const response = await fetch(address, {signal, headers: {Accept: 'text/html'}}); // the address of events has JSON too
			const answer = new DOMParser().parseFromString(await response.text(), 'text/html');
			if (signal.aborted) return;
			this.#show(answer);
			if (!refusalOf(answer)) history.replaceState(null, '', address);
		} catch {
			if (signal.aborted) return;
			this.#say(textOf('p', 'The server did not answer. Search again.'));
		}
		end();
		this.#found().forEach(part => { part.inert = false; });
	}

	#found() { return this.querySelectorAll('[data-found]'); }

	// say shows a text instead of what was found.
	#say(text) {
		for (const part of this.#found()) {
			if (part.matches('.found')) part.replaceChildren(text);
			else if (!part.matches('.lists')) part.replaceChildren();
		}
	}

	// show shows what the page of an answer has found.
	#show(answer) {
		const refusal = refusalOf(answer);
		if (refusal) {
			this.#say(refusal);
			return;
		}
		const fresh = [...answer.querySelectorAll('desk-search [data-found]')];
		const parts = this.#found();
		if (fresh.length !== parts.length) throw new Error();
		parts.forEach((part, i) => {
			part.replaceChildren(...fresh[i].childNodes);
			showTimes(part);
		});
		for (const select of this.querySelectorAll('form[role=search] select')) { // which say how many each would have
			const options = answer.getElementById(select.id)?.children;
			const {value} = select;
			if (options && select !== document.activeElement) select.replaceChildren(...options);
			select.value = value; // each option that leaves the answer has that choose another
		}
	}
});

// plain drops tags: Ghost's messages may have markup.
const plain = text => new DOMParser().parseFromString(String(text), 'text/html').body.textContent;

const maxListed = 30;

// listOf shows at most maxListed findings, each a label and a text.
const listOf = findings => {
	const list = document.createElement('ul');
	list.className = 'findings';
	for (const [label, text] of findings.slice(0, maxListed)) {
		const item = document.createElement('li');
		const code = document.createElement('code');
		code.append(textOf('bdi', label ?? '', 120));
		item.append(code, ' ', textOf('bdi', text ?? ''));
		list.append(item);
	}
	if (findings.length > maxListed) list.append(textOf('li', `And ${findings.length - maxListed} more.`));
	return list;
};

const array = value => Array.isArray(value) ? value : [];

// complaints are what Ghost says of a theme.
const complaints = list => array(list).map(c => [array(c?.failures).map(f => f?.ref).join(', ') || c?.code, plain(c?.rule ?? c?.message ?? '')]);

// said is Ghost's message and its details, in a response that is not a success.
const said = (status, answer, platform) => {
	const error = array(answer?.errors)[0];
	if (!error) return [`${platform} answered ${status}. Try again.`, []];
	const details = [error.details].flat().flatMap(d => d?.errors ? complaints(d.errors) : complaints([d].filter(Boolean)));
	return [[error.message, error.context].filter(Boolean).map(plain).join(' '), details];
};

const parse = text => {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
};

// desk-upload uploads a theme to where the platform takes it.
customElements.define('desk-upload', class extends HTMLElement {
	#request = null;

	connectedCallback() {
		const template = this.querySelector('template');
		if (!template || this.classList.contains('ready')) return;
		this.replaceChildren(template.content.cloneNode(true));
		this.classList.add('ready');
		const input = this.querySelector('input');
		input.addEventListener('change', () => this.#send([...input.files]));
		this.querySelector('.transfer button').addEventListener('click', () => this.#request?.abort());
		this.addEventListener('dragover', event => {
			event.preventDefault();
			this.classList.add('over');
		});
		this.addEventListener('dragleave', () => this.classList.remove('over'));
		this.addEventListener('drop', event => {
			event.preventDefault();
			this.classList.remove('over');
			this.#send([...event.dataTransfer.files]);
		});
	}

	get #page() { return this.closest('desk-page'); }

	#send(files) {
		if (this.#request || files.length === 0) return;
		if (files.length > 1 || !/\.zip$/i.test(files[0].name)) {
			this.#page.say(noticeOf(true, 'Choose one theme, as a zip.'));
			return;
		}
		const body = new FormData();
		body.append('file', files[0]);
		const request = this.#request = new XMLHttpRequest();
		request.upload.addEventListener('progress', event => this.#progress(event.loaded, event.total));
		request.upload.addEventListener('load', () => this.#status(`${this.getAttribute('platform')} checks the theme…`));
		request.addEventListener('loadend', () => this.#end(request, files[0].name));
		this.querySelector('.transfer').hidden = false;
		this.querySelector('input').disabled = true;
		this.querySelector('.transfer button').focus();
		this.#status('Uploading…');
		this.#progress(0, 1);
		request.open('POST', this.getAttribute('to'));
		request.setRequestHeader('Accept', 'application/json');
		request.send(body);
	}

	#status(text) { this.querySelector('[role=status]').textContent = text; }

	#progress(loaded, total) { this.querySelector('progress').value = total ? 100 * loaded / total : 0; }

	#end(request, name) {
		this.#request = null;
		this.querySelector('.transfer').hidden = true;
		const input = this.querySelector('input');
		input.disabled = false;
		input.value = '';
		const answer = parse(request.responseText);
		if (request.status >= 200 && request.status < 300) {
			this.#page.refresh(this.#uploaded(answer));
			return;
		}
		const [message, details] = request.status ? said(request.status, answer, this.getAttribute('platform')) : ['Nothing was uploaded: it was cancelled, or the server cannot be reached.', []];
		const notice = noticeOf(true, textOf('bdi', name, 120), ': ', textOf('bdi', message));
		if (details.length) notice.append(listOf(details));
		this.#page.say(notice);
	}

	// uploaded says what was found in a theme that Ghost has accepted.
	#uploaded(answer) {
		const theme = array(answer?.themes)[0] ?? {};
		const own = array(answer?._errors).map(f => [f?.field, f?.message]);
		const others = [...complaints(theme.errors), ...complaints(array(theme.warnings).filter(w => w?.code !== 'theme-manifest'))];
		const name = document.createElement('b');
		name.append(textOf('bdi', theme.name ?? 'The theme', 120));
		const notice = noticeOf(own.length + others.length > 0, name, ' was uploaded.');
		if (own.length) notice.append(textOf('p', 'Findings in its manifest:'), listOf(own));
		if (others.length) notice.append(textOf('p', `${this.getAttribute('platform')} says:`), listOf(others));
		return notice;
	}
});

// desk-activate activates a theme.
customElements.define('desk-activate', class extends HTMLElement {
	connectedCallback() {
		this.hidden = false;
		const button = this.querySelector('button');
		button.addEventListener('click', async () => {
			button.disabled = true;
			const page = this.closest('desk-page');
			const name = () => textOf('bdi', this.getAttribute('theme'), 120);
			try {
				const response = await fetch(this.getAttribute('to'), {method: 'PUT', headers: {Accept: 'application/json'}});
				if (response.ok) {
					await page.refresh(noticeOf(false, name(), ' is active now.'));
					return;
				}
				const [message, details] = said(response.status, parse(await response.text()), 'The server');
				const notice = noticeOf(true, name(), ' was not activated: ', textOf('bdi', message));
				if (details.length) notice.append(listOf(details));
				page.say(notice);
			} catch {
				page.say(noticeOf(true, name(), ' was not activated: the server cannot be reached. Try again.'));
			}
			button.disabled = false;
		});
	}
});

// desk-copy copies the text of another element.
customElements.define('desk-copy', class extends HTMLElement {
	connectedCallback() {
		if (this.firstChild) return;
		this.hidden = false;
		const button = textOf('button', 'Copy');
		button.type = 'button';
		button.className = 'button';
		button.append(Object.assign(textOf('span', ` the ${this.getAttribute('what')}`), {className: 'unseen'}));
		const done = document.createElement('span');
		done.setAttribute('role', 'status');
		button.addEventListener('click', async () => {
			done.textContent = '';
			done.textContent = await this.#copy() ? ' Copied.' : ' Selected: copy it with the keyboard.';
		});
		this.append(button, done);
	}

	async #copy() {
		const source = document.getElementById(this.getAttribute('for'));
		getSelection().selectAllChildren(source);
		try {
			await navigator.clipboard.writeText(source.textContent); // on secure pages alone
			return true;
		} catch {
			return document.execCommand('copy');
		}
	}
});
