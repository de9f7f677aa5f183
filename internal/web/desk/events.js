// The script of the event pages. Their forms work without it.

// valueOf is undefined for an empty field, so that the API does not get it.
const valueOf = field => {
	const input = field.querySelector('[name]');
	const text = input.value;
	switch (field.dataset.kind) {
	case 'toggle':
		return input.checked;
	case 'number':
		return text.trim() === '' ? undefined : Number.isFinite(Number(text)) ? Number(text) : text;
	case 'labels': {
		const labels = text.split('\n').map(label => label.trim()).filter(Boolean);
		return labels.length ? labels : undefined;
	}
	}
	return text.trim() === '' ? undefined : text;
};

const isEmpty = field => [undefined, false].includes(valueOf(field));

const clock = () => formatIn(document.querySelector('desk-page'), {hour: '2-digit', minute: '2-digit'}).format(new Date());

const buttonOf = text => Object.assign(textOf('button', text), {type: 'button', className: 'button'});

let sent = null; // the key of the event whose form is on its way, and what the browser kept of it

// desk-event saves a draft while somebody types, counts characters, and tells of others.
customElements.define('desk-event', class extends HTMLElement {
	#form;
	#timer = 0;
	#looking = 0;
	#saving = null; // the save that is under way
	#unsure = null; // what was sent, while nobody knows whether it is kept
	#typed = 0; // changes so far
	#saved = 0; // of these, how many are saved
	#empty = []; // the keys of the fields that were empty when the page came
	#kept = {}; // what is kept on the server, by the names of the inputs
	#stopped = false; // saving by itself, until somebody says how to go on
	#isAsked = false; // what became of #unsure, before the form is sent
	#isKept = true; // what is typed and not saved, by the browser
	#failed = 0; // saves in a row that the server did not take
	#keep; // what is typed and not saved
	#offered = null; // what was typed earlier, while it is neither restored nor discarded

	connectedCallback() {
		this.#form = this.querySelector('form');
		this.#keep = keptOf(this.getAttribute('owner'));
		this.#kept = this.#fields();
		this.#empty = [...this.querySelectorAll('[data-kind]')].filter(isEmpty).map(field => field.dataset.key);
		if (this.hasAttribute('saved') && sent) this.#arrived();
		sent = null;
		this.#stopped = this.hasAttribute('conflict');
		const type = this.#form.elements.type;
		type.nextElementSibling.hidden = true; // changing it sends the form
		this.#form.addEventListener('input', event => {
			if (event.target === type) return;
			this.#clear(event.target.closest('.field'));
			this.#fill(event.target.closest('.field'));
			this.#ends();
			this.#changed();
		});
		type.addEventListener('change', () => this.#form.requestSubmit(type.nextElementSibling));
		this.addEventListener('submit', event => this.#submit(event));
		this.addEventListener('click', event => {
			if (event.target.closest('[data-discard]')) this.#discard();
			const problem = event.target.closest('#problems a');
			if (!problem) return;
			event.preventDefault(); // after a jump to an anchor WebKit does not take what is typed there
			document.getElementById(problem.hash.slice(1)).focus();
		});
		for (const name of ['dragover', 'drop']) { // a browser would open a file that is dropped beside its zone
			this.addEventListener(name, event => {
				if (event.defaultPrevented || !event.dataTransfer.types.includes('Files')) return;
				event.preventDefault();
				event.dataTransfer.dropEffect = 'none';
			});
		}
		document.addEventListener('visibilitychange', this.#leave);
		addEventListener('online', this.#return);
		addEventListener('beforeunload', this.#warn);
		for (const count of this.querySelectorAll('.count')) this.#count(count);
		this.#offer();
		this.#look();
		setTimeout(() => this.#setAddress()); // when the page has set its own
	}

	disconnectedCallback() {
		clearTimeout(this.#timer);
		clearTimeout(this.#looking);
		document.removeEventListener('visibilitychange', this.#leave);
		removeEventListener('online', this.#return);
		removeEventListener('beforeunload', this.#warn);
	}

	get revision() { return this.#form.elements.revision.value; }

	// renew takes over what the server has made of a revision, unless somebody has typed or saved since.
	renew(fresh, revision) {
		const isTyped = this.#typed !== this.#saved || this.#saving || this.#stopped || this.#offered || this.querySelector('#problems');
		if (!fresh || isTyped || this.revision !== revision || fresh.querySelector('[name=revision]').value === revision) return;
		const name = this.contains(document.activeElement) ? document.activeElement.name : '';
		this.replaceWith(fresh);
		if (name) [...fresh.querySelectorAll('[name]')].find(input => input.name === name)?.focus();
	}

	// arrived forgets what was sent. What was typed since then is kept.
	#arrived() {
		const typed = this.#keep.get(sent.key);
		this.#keep.set(sent.key, sent.offered);
		if (JSON.stringify(typed) !== sent.typed) this.#keep.set(this.#key, {...typed, revision: this.#form.elements.revision.value});
	}

	get #id() { return this.#form.elements.event.value; }
	get #key() { return this.#id || 'new'; }
	get #isDraft() { return this.getAttribute('status') === 'draft'; }
	get #page() { return this.closest('desk-page'); }

	#leave = () => {
		if (document.visibilityState === 'hidden' && this.isConnected) this.#save();
	};

	#return = () => {
		if (this.#failed) this.#save();
	};

	// warn has the browser ask before it closes a tab with changes that nobody has sent. Those of a
	// draft are sent by themselves, or else kept.
	#warn = event => {
		const isUnsent = this.#typed !== this.#saved || !!this.#id && !this.hasAttribute('saved') && !!this.#keep.get(this.#key);
		if ((!this.#isDraft || !this.#isKept) && isUnsent && !this.#page?.ariaBusy) event.preventDefault();
	};

	#discard() {
		this.#keep.set(this.#key, null);
		this.#saved = this.#typed;
		this.setAttribute('saved', '');
	}

	#setAddress() {
		if (this.isConnected && this.#id && new URLSearchParams(location.search).get('event') !== this.#id) {
			history.replaceState(null, '', `events?${new URLSearchParams({event: this.#id})}`);
		}
	}

	#setTitle() {
		const name = this.querySelector('[data-key=name] [name]')?.value.trim();
		if (name && this.isConnected) document.querySelector('.event-head bdi').textContent = name;
	}

	get #whereKept() {
		return this.#isKept ? 'What you typed is kept in this browser.' : 'This browser cannot keep what you typed, such as because it is too long: do not close the page before it is saved.';
	}

	#state(...parts) { this.querySelector('.state').replaceChildren(...parts); }

	#changed() {
		this.#typed++;
		this.#remember();
		if (!this.#isDraft) this.#state('Not updated yet', ...this.#isKept ? [] : ['. ', this.#whereKept]);
		clearTimeout(this.#timer);
		this.#timer = setTimeout(() => this.#save(), 1000);
	}

	// clear takes away what was wrong with a field before it was changed.
	#clear(field) {
		field?.classList.remove('wrong');
		field?.querySelector('.wrong-text')?.remove();
		for (const input of field?.querySelectorAll('[aria-invalid]') ?? []) input.removeAttribute('aria-invalid');
	}

	// miss shows what is missing in the lists at the top, of which each entry is about a field. A list without
	// entries goes.
	#miss(isMissing) {
		for (const list of this.#page.querySelectorAll('[data-missing]')) {
			const items = [...list.querySelectorAll('li')], {hidden} = list;
			for (const item of items) item.hidden = !isMissing(item);
			list.hidden = items.every(item => item.hidden);
			if (list.hidden && !hidden) announce('Nothing is missing any more.');
		}
	}

	// missing shows what the server has found, also of fields of which the list had no entry.
	#missing(problems) {
		for (const list of this.#page.querySelectorAll('[data-missing] ul')) {
			for (const {field} of problems) {
				if ([...list.children].some(item => item.dataset.field === field)) continue;
				const item = document.createElement('li'), at = [...this.querySelectorAll('[data-kind]')].find(({dataset}) => dataset.key === field)?.querySelector('[id]');
				item.dataset.field = field;
				item.append(at && list.closest('#problems') ? Object.assign(document.createElement('a'), {href: `#${at.id}`}) : document.createElement('bdi'));
				list.append(item);
			}
		}
		this.#miss(item => {
			const problem = problems.find(({field}) => field === item.dataset.field);
			if (problem) (item.firstElementChild ?? item).textContent = problem.message;
			return !!problem;
		});
	}

	// fill takes a field of an event that is not saved by itself for right once it is filled, if it was empty.
	#fill(field) {
		if (this.#isDraft || !this.#empty.includes(field?.dataset.key)) return;
		this.#miss(item => item.dataset.field === field.dataset.key ? isEmpty(field) : !item.hidden);
	}

	#fields() {
		return Object.fromEntries([...this.querySelectorAll('[data-key] [name]')].map(input => [input.name, input.type === 'checkbox' ? input.checked : input.value]));
	}

	// remember keeps in the browser what is typed and not saved, and on what it was typed. What is
	// offered stays beside it, and on what that was typed.
	#remember() {
		const {revision, once} = this.#form.elements;
		const fields = Object.entries(this.#fields()).filter(([name, value]) => value !== this.#kept[name]);
		this.#isKept = !fields.length || this.#keep.set(this.#key, {...this.#keep.get(this.#key), ...Object.fromEntries(fields), revision: (this.#offered ?? {revision: revision.value}).revision, once: once?.value});
	}

	// offer offers what was typed earlier, and not saved.
	#offer() {
		const kept = this.#keep.get(this.#key);
		if (!kept || this.hasAttribute('conflict') || this.querySelector('#problems')) return;
		const now = this.#fields();
		const inputs = [...this.querySelectorAll('[data-key] [name]')].filter(input => input.name in kept && kept[input.name] !== now[input.name]);
		if (!inputs.length) return;
		const key = this.#key;
		const decided = () => {
			this.#offered = null;
			if (key !== this.#key) this.#keep.set(key, null);
			notice.remove();
		};
		this.#offered = kept;
		const restore = buttonOf('Restore it'), discard = buttonOf('Discard it');
		const notice = noticeOf(false, 'Something was typed here earlier that was not saved.', kept.revision === this.#form.elements.revision.value ? '' : ' The event was changed since then. Look at what it has now before you restore that.');
		const buttons = document.createElement('p');
		buttons.className = 'buttons';
		buttons.append(restore, discard);
		notice.append(buttons);
		restore.addEventListener('click', () => {
			decided();
			if (!this.#id && kept.once) this.#form.elements.once.value = kept.once; // it may have been made with it
			for (const input of inputs) {
				if (input.type === 'checkbox') input.checked = kept[input.name];
				else input.value = kept[input.name];
				input.dispatchEvent(new Event('input', {bubbles: true}));
				input.dispatchEvent(new Event('restore'));
				input.closest('details')?.setAttribute('open', '');
			}
			inputs[0].focus();
		});
		discard.addEventListener('click', () => {
			decided();
			this.#discard();
			this.querySelector('[data-key] [name]').focus();
		});
		this.prepend(notice);
	}

	// submit sends the form when no save is under way. That of a new event waits until it is known what
	// an earlier save has made, if the server says it.
	async #submit(event) {
		clearTimeout(this.#timer);
		if (this.#unsure && !this.#id && !this.#isAsked) {
			this.#save();
			this.#isAsked = true;
		}
		this.#remember();
		sent = {key: this.#key, offered: this.#offered, typed: JSON.stringify(this.#keep.get(this.#key))};
		if (!this.#saving) {
			this.#isAsked = false;
			this.#stopped = true; // the page is replaced, unless it is refused
			if (event.submitter?.hasAttribute('data-leave')) this.#saved = this.#typed; // it is sent, so nobody is asked
			else setTimeout(() => this.#resume(), 100);
			return;
		}
		event.preventDefault();
		event.stopPropagation();
		const submitter = event.submitter;
		await this.#saving;
		if (this.isConnected) this.#form.requestSubmit(submitter);
	}

	// resume goes on saving when the page has an answer to the form.
	#resume() {
		if (this.#page?.ariaBusy) setTimeout(() => this.#resume(), 100);
		else if (this.isConnected) {
			this.#stopped = this.hasAttribute('conflict');
			this.#save();
		}
	}

	// save saves a draft, unless there is nothing to save.
	async #save() {
		clearTimeout(this.#timer);
		if (!this.#isDraft || this.#stopped || this.#saving || this.#typed === this.#saved) return;
		this.#unsure ??= {count: this.#typed, fields: this.#fields(), body: this.#body()};
		const {count, fields, body} = this.#unsure;
		this.#saving = this.#put(body);
		const isSaved = await this.#saving;
		this.#saving = null;
		if (!this.isConnected) return;
		if (!isSaved) {
			this.#retry();
			return;
		}
		this.#failed = 0;
		this.#saved = count;
		this.#kept = fields;
		if (this.#typed === count) {
			this.#keep.set(this.#key, this.#offered);
		} else {
			this.#remember();
			this.#timer = setTimeout(() => this.#save(), 1000);
		}
	}

	// retry tries again by itself what the server did not take because it was not there or was busy:
	// after 5, 10, 20 … seconds, a minute at most, and at once when the network is back.
	#retry() {
		if (!this.#unsure) return; // it was refused
		const wait = Math.min(5000 * 2 ** this.#failed++, 60000);
		this.#timer = setTimeout(() => this.#save(), wait);
	}

	#body() {
		const {elements} = this.#form;
		const values = JSON.parse(elements.kept.value);
		for (const field of this.querySelectorAll('[data-kind]')) values[field.dataset.key] = valueOf(field);
		return JSON.stringify({theme: this.getAttribute('theme'), type: elements.was.value, values});
	}

	// put sends a draft, and reports whether it is kept.
	async #put(body) {
		const {elements} = this.#form, id = this.#id;
		const headers = {'Content-Type': 'application/json', Accept: 'application/json'};
		if (id) headers['If-Match'] = `"${elements.revision.value}"`;
		else headers['Idempotency-Key'] = elements.once.value;
		this.#state('Saving…');
		try {
			const response = await fetch(id ? `events/${encodeURIComponent(id)}` : 'events', {method: id ? 'PUT' : 'POST', headers, body, keepalive: body.length < 30000, signal: AbortSignal.timeout(30000)});
			const answer = parse(await response.text());
			if (response.ok && !answer) throw new Error('cut off'); // which WebKit does not say
			if (response.status === 409 && !id) return await this.#goOn(answer, body);
			if (response.status < 500 && ![401, 408, 429].includes(response.status)) this.#unsure = null;
			if (response.ok) {
				this.#becomes(answer.id, answer.revision);
				this.#setTitle();
				this.setAttribute('status', answer.status);
				this.#missing(array(answer.problems));
				this.#state(this.#isDraft ? `Saved at ${clock()}` : 'The event was published meanwhile: saving it changes what readers see.');
				return true;
			}
			this.#refused(response.status, answer?.message);
		} catch {
			this.#state(`Not saved: the server cannot be reached. ${this.#whereKept} `, this.#again());
		}
		return false;
	}

	// becomes has the page edit an event that is kept.
	#becomes(id, revision) {
		const {elements} = this.#form, isNew = !this.#id;
		if (isNew) {
			this.#keep.set('new', this.#offered);
			this.#offered = null;
		}
		elements.event.value = id;
		elements.revision.value = revision;
		this.#setAddress();
		if (isNew) this.#addButtons();
	}

	// addButtons adds what the page of an event that is kept has around the form.
	async #addButtons() {
		try {
			const response = await fetch(`events?${new URLSearchParams({event: this.#id})}`, {headers: {Accept: 'text/html'}});
			const answer = new DOMParser().parseFromString(await response.text(), 'text/html');
			if (!this.isConnected) return;
			renew(this.#page, answer);
			this.#setTitle();
		} catch {} // they are there once the event is opened again
	}

	// goOn saves a draft into the event that an earlier one made, whose answer was lost. Over what
	// somebody has changed since, it is not saved; instead of one that is being deleted, another is made.
	async #goOn({id, revision}, body) {
		if (!id) {
			this.#form.elements.once.value = crypto.getRandomValues(new Uint32Array(4)).join('-');
			this.#state('Not saved yet: it is sent again in a moment.');
			return false;
		}
		this.#becomes(id, revision ?? -1); // which no event has
		this.#remember();
		if (revision) return this.#put(body);
		this.#unsure = null;
		this.#conflict();
		return false;
	}

	#again() {
		const again = buttonOf('Try again');
		again.addEventListener('click', () => this.#save());
		return again;
	}

	#refused(status, message) {
		if (status === 412) {
			this.#conflict();
		} else if (status === 401) {
			const link = Object.assign(textOf('a', 'Sign in'), {href: document.querySelector('header .back').href, target: '_blank'});
			this.#state(`Not saved: your session has ended. ${this.#whereKept} `, link, ', and then ', this.#again());
		} else {
			this.#state('Not saved: ', textOf('bdi', message ?? `the server answered ${status}.`), ' ', ...this.#isKept ? [] : [this.#whereKept, ' '], this.#again());
		}
	}

	// conflict asks whose version is to be kept.
	#conflict() {
		this.#stopped = true;
		this.#state('Not saved: somebody else changed the event.');
		const theirs = Object.assign(textOf('a', 'Load theirs'), {className: 'button', href: `events?${new URLSearchParams({event: this.#id})}`});
		theirs.dataset.discard = '';
		const mine = buttonOf('Keep mine');
		mine.classList.add('danger');
		mine.addEventListener('click', () => this.#keepMine(notice));
		const notice = noticeOf(true, 'Somebody changed this event meanwhile. Nothing of it was overwritten. ', this.#whereKept);
		const buttons = document.createElement('p');
		buttons.className = 'buttons';
		buttons.append(theirs, mine);
		notice.append(buttons);
		notice.setAttribute('role', 'alert');
		this.querySelector(':scope > .notice')?.remove();
		this.prepend(notice);
	}

	async #keepMine(notice) {
		try {
			const response = await fetch(`events/${encodeURIComponent(this.#id)}`, {headers: {Accept: 'application/json'}});
			const answer = parse(await response.text());
			if (!response.ok || !answer) {
				this.#refused(response.status, answer?.message);
				return;
			}
			this.#form.elements.revision.value = answer.revision;
			this.#stopped = false;
			notice.remove();
			this.#form.querySelector('[data-key] [name]').focus();
			this.#typed++;
			this.setAttribute('status', answer.status);
			if (this.#isDraft) await this.#save();
			else this.#state('The event was published meanwhile: saving it changes what readers see.');
		} catch {
			this.#state('The server cannot be reached. Try again.');
		}
	}

	// look tells who else has the event open.
	async #look() {
		clearTimeout(this.#looking);
		this.#looking = setTimeout(() => this.#look(), 20000);
		if (!this.#id || document.visibilityState === 'hidden') return;
		try {
			const response = await fetch(`events/${encodeURIComponent(this.#id)}/presence`, {method: 'POST', headers: {Accept: 'application/json'}});
			if (response.status === 404) clearTimeout(this.#looking); // the event is gone, or nobody keeps that
			if (!response.ok) return;
			const {others} = await response.json();
			this.#others(array(others));
		} catch {} // it is asked again
	}

	#others(names) {
		let line = this.querySelector('.others');
		if (!line) {
			line = document.createElement('p');
			line.className = 'others';
			line.setAttribute('role', 'status');
			this.prepend(line);
		}
		const text = names.length ? `Also open at: ${names.slice(0, 10).join(', ')}` : '';
		if (line.textContent !== text) line.replaceChildren(...text ? [textOf('bdi', text)] : []);
	}

	// count says how many characters there are, of those that are taken or recommended, once that is 80 % of them. Before,
	// it says to a screen reader alone how many are taken.
	#count(of) {
		const input = document.getElementById(of.dataset.for);
		const most = Number(input.dataset.most ?? 0), advice = Number(input.dataset.advised ?? 0), advised = most && advice >= most ? 0 : advice;
		const show = () => {
			const length = [...input.value].length, isLonger = advised > 0 && length > advised, limit = advised && !isLonger ? advised : most || advised;
			const isNear = isLonger || length >= .8 * limit;
			let more = '';
			if (advised && !isLonger) more = ', as recommended';
			else if (isLonger && length <= limit) more = `, more than the ${advised} recommended`;
			else if (isLonger && !most) more = ', more than recommended';
			if (isNear) of.textContent = `${length} of ${limit} characters${more}`;
			else of.textContent = most ? `${most} characters at most.` : '';
			of.classList.toggle('unseen', !isNear);
			of.classList.toggle('over', isLonger || length > limit);
		};
		input.addEventListener('input', show);
		show();
	}

	// ends says on which day the event ends, if that is another one than it starts on.
	#ends() {
		const line = this.querySelector('.ends');
		if (!line) return;
		const value = selector => this.querySelector(`${selector} [name]`)?.value ?? '';
		const first = value('[data-key=event_date]'), last = value('[data-key=event_date_end] .more');
		const start = value('[data-key=event_time_start]'), end = value('[data-key=event_time_end]');
		const day = new Date(`${last >= first ? last : first}T00:00Z`);
		if (!(last >= first) && start && end && end < start) day.setUTCDate(day.getUTCDate() + 1);
		const isLater = day > new Date(`${first}T00:00Z`);
		const format = options => new Intl.DateTimeFormat('en-GB', {timeZone: 'UTC', ...options}).format(day);
		const text = isLater ? `Ends on ${format({weekday: 'long'})}, ${format({day: 'numeric', month: 'long', year: 'numeric'})}.` : '';
		if (line.textContent !== text) line.textContent = text;
	}
});

// desk-message shows what readers see of a message while somebody types it.
customElements.define('desk-message', class extends HTMLElement {
	connectedCallback() {
		this.addEventListener('input', ({target}) => {
			for (const seen of this.querySelectorAll('.seen-text bdi')) {
				seen.textContent = [seen.dataset.first, textOf('bdi', target.value.trim()).textContent || seen.dataset.default].filter(Boolean).join('\n');
			}
		});
	}
});
