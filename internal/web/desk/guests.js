// The script of the check-in page, whose forms work without it. The guest list has that of all pages.

// kept has the phone remember what was pressed at the door and is not sent yet, by member. Some
// browsers do not let a page; then it is remembered until the page is closed.
const kept = {
	get(event) {
		try {
			return new Map(Object.entries(JSON.parse(localStorage.getItem(`lychgate-door-${event}`)) ?? {}));
		} catch {
			return new Map();
		}
	},
	set(event, pressed) {
		try {
			if (pressed.size) localStorage.setItem(`lychgate-door-${event}`, JSON.stringify(Object.fromEntries(pressed)));
			else localStorage.removeItem(`lychgate-door-${event}`);
		} catch {}
	},
};

const pollTime = 3000; // milliseconds
const requestTime = 10000; // milliseconds, after which the network counts as away
const lateTime = 2000; // milliseconds, after which the server is told when a button was pressed, as it is after a failure
const maxShown = 50; // guests

const collator = new Intl.Collator();

// fold is what a text is searched by, without accents, as the server does it (internal/lib/fold).
const plainLetters = {
	'’': "'", '‘': "'", '‛': "'", 'ʼ': "'", 'ʻ': "'", '′': "'", '`': "'",
	ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', ħ: 'h', ı: 'i',
};
const fold = text => text.normalize('NFKD').replace(/([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])\p{Mn}+/gu, '$1')
	.toLowerCase().replace(/[’‘‛ʼʻ′`ßæœøłđðþħı]/gu, letter => plainLetters[letter]);

const clockOf = formatIn(document.querySelector('desk-page'), {hour: '2-digit', minute: '2-digit'});

// desk-door checks guests in. It has the whole list, so that it finds guests without a network,
// and learns every few seconds what other doors did.
customElements.define('desk-door', class extends HTMLElement {
	#guests = new Map(); // those who are registered, by member
	#sorted = null; // the same by name, null after a change
	#pressed = new Map(); // {isIn, at, id, isLate} by member, while the server does not have it
	#changes = ''; // what the list is read after
	#tag = ''; // the ETag of the list
	#ahead = 0; // milliseconds by which the server's clock is ahead of this one
	#timer = 0;
	#isBusy = false;
	#isRead = false; // the whole list was read
	#isShown = false; // what is shown is of the script
	#wasAway = false;
	#presses = 0;
	#isAdding = false; // a walk-in

	connectedCallback() {
		this.#pressed = kept.get(this.#event);
		this.classList.add('ready');
		const form = this.querySelector('form[role=search]');
		form.addEventListener('submit', event => event.preventDefault());
		form.elements.q.addEventListener('input', () => this.#show());
		form.elements.q.addEventListener('focus', ({target}) => {
			const {value} = target;
			setTimeout(() => target.value === value && target.select()); // for the next name, unless its first letter is there
		});
		this.querySelector('.door-list').addEventListener('click', event => {
			const button = event.target.closest('button[data-member]');
			if (!button) return;
			event.preventDefault();
			this.#press(button.dataset.member, button.value === 'in');
		});
		const walkIn = this.querySelector('.walk-in');
		walkIn?.addEventListener('toggle', () => {
			const {name, email} = walkIn.querySelector('form').elements, typed = form.elements.q.value.trim();
			if (!walkIn.open) return;
			if (!name.value && !email.value) (typed.includes('@') ? email : name).value = typed; // who was looked for in vain
			name.focus();
		});
		walkIn?.addEventListener('submit', event => {
			event.preventDefault();
			this.#add(event.target, event.submitter?.name === 'over');
		});
		walkIn?.addEventListener('input', () => this.#sayOf(walkIn, ''));
		window.addEventListener('online', this.#sync);
		document.addEventListener('visibilitychange', this.#sync);
		this.#sync();
	}

	disconnectedCallback() {
		clearTimeout(this.#timer);
		window.removeEventListener('online', this.#sync);
		document.removeEventListener('visibilitychange', this.#sync);
	}

	get #event() { return this.getAttribute('event'); }
	get #list() { return this.getAttribute('list'); }

	// press checks a guest in, or takes that back, here at once and then on the server.
	#press(member, isIn) {
		this.#pressed.set(member, {isIn, at: Date.now(), id: `${Date.now()}-${++this.#presses}`});
		kept.set(this.#event, this.#pressed);
		this.#show();
		const guest = this.#guests.get(member);
		announce(`${guest?.name || guest?.email || 'The guest'}: ${isIn ? 'checked in' : 'not checked in'}`);
		this.#sync();
	}

	// add registers a walk-in, and checks them in as a press does. What was typed stays until the server has it, which registers
	// one with the same key once.
	async #add(form, isOver) {
		if (this.#isAdding) return;
		this.#isAdding = true;
		const {name, email, key} = form.elements, end = working();
		try {
			const response = await this.#fetch(this.#list, {
				method: 'POST', headers: {'Content-Type': 'application/json', 'Idempotency-Key': key.value},
				body: JSON.stringify({name: name.value, email: email.value.trim(), over_limit: isOver}),
			});
			const answer = await response.json().catch(() => ({}));
			if (response.ok && !answer.member) throw 'server';
			if (response.ok) {
				this.#keep(answer);
				form.reset();
				name.value = email.value = '';
				key.value = `${Date.now()}-${Math.random()}`;
				form.closest('details').open = false;
				const search = this.querySelector('[name=q]');
				search.value = answer.name || answer.email; // so that they are seen, and the next name takes its place
				search.focus();
				search.select();
				this.#press(answer.member, true);
			} else {
				this.#sayOf(form, answer.message ?? `The server answered ${response.status}.`, answer.reason === 'full');
			}
		} catch (error) {
			const unknown = 'Whether the guest was added is not known. Press again: nobody is added twice.';
			this.#sayOf(form, error === 'session' ? `Your session has ended. Nobody was added. Sign in to the site's admin again, in another tab, and press again.`
				: `${error === 'server' ? 'The server does not answer as it should.' : 'No network.'} ${unknown}`);
		}
		end();
		this.#isAdding = false;
	}

	// sayOf says why a walk-in was not added, and asks whether they are over the limit.
	#sayOf(form, text, isFull = false) {
		form.querySelector('[name=over]')?.remove();
		form.querySelector('.said').textContent = text;
		if (!isFull) return;
		const over = Object.assign(textOf('button', 'Add over the limit'), {name: 'over', className: 'button over'});
		form.querySelector('.buttons').append(over);
		over.focus();
	}

	// sync sends what was pressed, and reads what has changed. Nothing else does either.
	#sync = async () => {
		if (this.#isBusy || document.visibilityState === 'hidden' || !this.isConnected) return;
		this.#isBusy = true;
		clearTimeout(this.#timer);
		let problem = '';
		try {
			if (!this.#isRead) await this.#read(); // which says how far the clock of this phone is off
			await this.#send();
			await this.#read();
		} catch (error) {
			problem = error;
			for (const press of this.#pressed.values()) press.isLate = true;
			kept.set(this.#event, this.#pressed);
		}
		this.#isBusy = false;
		this.#say(problem);
		if (this.isConnected) this.#timer = setTimeout(this.#sync, problem || !this.#pressed.size ? pollTime : 0);
	};

	async #fetch(address, options) {
		const response = await fetch(address, {...options, headers: {Accept: 'application/json', ...options?.headers}, signal: AbortSignal.timeout(requestTime)});
		const there = Date.parse(response.headers.get('Date'));
		if (!Number.isNaN(there)) this.#ahead = there - Date.now();
		if (response.status === 401 || response.status === 403) throw 'session';
		if (response.status === 429 || response.status >= 500) throw 'server';
		return response;
	}

	async #send() {
		for (const [member, {isIn, at, id, isLate}] of [...this.#pressed]) {
			const late = isLate || Date.now() - at > lateTime ? `?at=${encodeURIComponent(new Date(at + this.#ahead).toISOString())}` : '';
			const response = await this.#fetch(`${this.#list}/${encodeURIComponent(member)}/check-in${late}`, {method: isIn ? 'PUT' : 'DELETE'});
			const answer = await response.json().catch(() => ({}));
			if (response.ok && !answer.member) throw 'server'; // it is somebody else's answer, as of a hall's Wi-Fi
			if (response.ok) {
				this.#keep(answer);
			} else {
				const guest = this.#guests.get(member);
				this.closest('desk-page').say(noticeOf(true, textOf('b', guest?.name || guest?.email || 'A guest', 120), ': ', textOf('bdi', answer.message ?? `The server answered ${response.status}.`)));
			}
			if (this.#pressed.get(member)?.id === id) this.#pressed.delete(member); // else it was pressed again
			kept.set(this.#event, this.#pressed);
			this.#show();
		}
	}

	async #read() {
		for (let next = this.#changes; next !== null;) {
			const isWhole = this.#isRead && next === this.#changes;
			const response = await this.#fetch(`${this.#list}?limit=1000&changed_after=${encodeURIComponent(next)}`, {headers: isWhole ? {'If-None-Match': this.#tag} : {}});
			if (response.status === 304) return;
			const answer = await response.json().catch(() => ({}));
			if (!response.ok) throw answer.message ?? 'server';
			if (!answer.registrations) throw 'server';
			for (const guest of answer.registrations) this.#keep(guest);
			next = answer.next;
			this.#changes = answer.changes;
			if (next === null) this.#tag = response.headers.get('ETag');
		}
		this.#isRead = true;
		this.#show();
	}

	#keep(guest) {
		this.#sorted = null;
		if (guest.cancelled_at) {
			this.#guests.delete(guest.member);
		} else {
			this.#guests.set(guest.member, {...guest, text: `${guest.name} ${guest.email}`.toLowerCase(), search: fold(`${guest.name} ${guest.email}`)});
		}
	}

	#isIn(guest) { return this.#pressed.get(guest.member)?.isIn ?? guest.checked_in_at !== null; }

	#show() {
		if (!this.#isRead) return;
		const all = this.#sorted ??= [...this.#guests.values()].sort((a, b) => collator.compare(a.text, b.text));
		this.querySelector('.arrived').textContent = all.filter(guest => this.#isIn(guest)).length;
		this.querySelector('.expected').textContent = all.length;
		const words = fold(this.querySelector('[name=q]').value).split(/\s+/).filter(Boolean);
		const found = all.filter(guest => words.every(word => guest.search.includes(word)));
		this.#showRows(found.slice(0, maxShown).map(guest => this.#rowOf(guest)));
		this.querySelector('.rest').textContent = found.length > maxShown ? `And ${found.length - maxShown} more. Type more of the name.`
			: found.length ? '' : all.length ? 'Nobody is found.' : 'Nobody is registered.';
	}

	// showRows leaves rows alone that are there already: a finger may be on one.
	#showRows(rows) {
		const list = this.querySelector('.door-list'), focused = document.activeElement?.dataset?.member;
		const isSameOrder = this.#isShown && list.children.length === rows.length && rows.every((row, i) => row.dataset.of === list.children[i].dataset.of);
		if (isSameOrder) {
			rows.forEach((row, i) => {
				if (!row.isEqualNode(list.children[i])) list.children[i].replaceWith(row);
			});
		} else {
			list.replaceChildren(...rows);
		}
		this.#isShown = true;
		if (focused && document.activeElement?.dataset?.member !== focused) [...list.querySelectorAll('button')].find(button => button.dataset.member === focused)?.focus();
	}

	#rowOf(guest) {
		const isIn = this.#isIn(guest), row = document.createElement('li'), text = document.createElement('p');
		row.dataset.of = guest.member;
		row.className = isIn ? 'in' : '';
		const who = guest.name || guest.email || 'A deleted member';
		text.append(Object.assign(textOf('bdi', who, 120), {className: 'who'}));
		const small = (...parts) => {
			const line = document.createElement('small');
			line.append(...parts);
			text.append(line);
		};
		if (guest.name && guest.email) small(textOf('bdi', guest.email, 120));
		if (isIn) {
			const pressed = this.#pressed.get(guest.member);
			small(`Checked in ${clockOf.format(pressed ? pressed.at : new Date(guest.checked_in_at))}${pressed ? ', not sent yet' : ''}`);
		}
		const button = textOf('button', isIn ? 'Undo' : 'Check in');
		button.type = 'button';
		button.className = isIn ? 'button' : 'button primary';
		button.value = isIn ? 'out' : 'in';
		button.dataset.member = guest.member;
		const whose = Object.assign(textOf('span', isIn ? ': ' : ' '), {className: 'unseen'});
		whose.append(textOf('bdi', who, 120));
		button.append(whose);
		row.append(text, button);
		return row;
	}

	// say tells whether the list is up to date, and what is not sent.
	#say(problem) {
		const waiting = this.#pressed.size ? ` ${this.#pressed.size === 1 ? 'One press is' : `${this.#pressed.size} presses are`} kept on this phone and sent later.` : '';
		const net = this.querySelector('.net');
		let text = '';
		if (problem === 'session') text = `Your session has ended. Sign in to the site's admin again, in another tab.${waiting}`;
		else if (problem instanceof TypeError || problem instanceof DOMException) text = `No network. The list is as it was.${waiting}`;
		else if (problem === 'server') text = `The server does not answer as it should.${waiting}`;
		else if (problem) text = `${problem.message ?? problem}${waiting}`;
		else if (this.#wasAway) text = 'All is sent, and the list is up to date.';
		if (net.textContent !== text) net.textContent = text;
		if (!problem && this.#wasAway) setTimeout(() => { if (net.textContent === text) net.textContent = ''; }, 5000);
		this.#wasAway = Boolean(problem);
	}
});
