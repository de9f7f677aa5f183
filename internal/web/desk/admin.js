// The script of the desk in Ghost's own admin, which loads it as an extension
// (docs/staff_desk.md#inside-ghost-admin). Where the admin's page is not as expected, it
// does nothing: the desk's own pages have it all.
(() => {
	const own = document.currentScript;
	if (!own) return;
	const address = new URL(own.src);

	// An extension that the operator has set in Ghost is loaded as Ghost's admin would.
	const then = new URLSearchParams(address.hash.slice(1)).get('then');
	if (then) own.after(Object.assign(document.createElement('script'), {src: then}));

	// Ghost's admin loads extensions again for the next user who signs in.
	const running = Symbol.for('lychgate.admin');
	if (window[running]) {
		window[running]();
		return;
	}

	// elementOf never takes text for markup.
	const elementOf = (name, className, ...parts) => {
		const element = document.createElement(name);
		if (className) element.className = className;
		element.append(...parts);
		return element;
	};

	// pages are the addresses of pages that have an entry, by its label, and "" for those
	// that have none now.
	let pages = {};
	const entriesOf = answer => ({'Homepage Curation': answer.curation ?? '', Events: answer.events ?? ''});
	let themes = new Map(); // those with a manifest or a repository, by name

	let asking = false, again = false;

	// ask asks what is to be shown. While it asks, it is asked to ask once more at most.
	const ask = async () => {
		again = asking;
		if (asking) return;
		asking = true;
		do {
			again = false;
			try {
				const response = await fetch(new URL('admin.json', address), {headers: {Accept: 'application/json'}});
				if (response.ok) {
					const answer = await response.json();
					pages = entriesOf(answer);
					themes = new Map(answer.themes.map(theme => [theme.name, theme]));
				} else if (response.status < 500) { // nobody is signed in any more
					pages = entriesOf({});
					themes = new Map();
				}
			} catch {
				// What is shown stays, while the server cannot be reached.
			}
		} while (again);
		asking = false;
		schedule();
	};

	// markup is what of Ghost's admin is looked for: in Ghost 5, and in Ghost 6.
	const markup = {
		list: '.gh-nav-list-posts .gh-nav-view-list, #posts-submenu > :first-child', // under Posts
		expander: '.gh-nav-button-expand, [aria-controls=posts-submenu]', // of that list
		posts: 'ul > li > a[href="#/posts/"]',
		theme: '[data-testid=theme-list-item] [id^=theme-]',
	};

	// listOfEntries is the list under Posts. Where the admin has none that is known, so that nobody could find
	// the desk, it is the one that Posts is in; but not while that under Posts is only collapsed.
	const listOfEntries = () => document.querySelector(markup.list) ?? (document.querySelector(markup.expander) ? null : document.querySelector(markup.posts)?.closest('ul'));

	// keptOfLinks are the attributes with which the admin's own entries are styled.
	const keptOfLinks = ['class', 'data-sidebar', 'data-size', 'data-active'];

	// entryLike copies the look of one of the admin's entries: what stands between it and its link, too.
	const entryLike = (item, link, text) => {
		const copy = link.cloneNode(false), label = link.querySelector('span')?.cloneNode(false) ?? elementOf('span');
		for (const {name} of [...copy.attributes]) {
			if (!keptOfLinks.includes(name)) copy.removeAttribute(name);
		}
		copy.classList.remove('active');
		if (copy.dataset.active) copy.dataset.active = 'false';
		label.append(text);
		copy.append(label);
		let entry = copy;
		for (let around = link; around !== item; around = around.parentElement) {
			const outer = around.parentElement.cloneNode(false);
			outer.removeAttribute('id');
			outer.append(entry);
			entry = outer;
		}
		entry.dataset.lychgate = text;
		return entry;
	};

	// showEntries puts the entries under Posts, behind the admin's own and in their order, or takes them away.
	// Ghost 6.65 takes its own away while the list is collapsed, so that nobody gets there by keyboard.
	const showEntries = () => {
		const list = listOfEntries();
		if (!list) return;
		for (const entry of document.querySelectorAll('li[data-lychgate]')) {
			if (entry.parentElement !== list) entry.remove();
		}
		const item = list.querySelector(':scope > li:not([data-lychgate])'), like = item?.querySelector('a'), entries = [];
		for (const [text, address] of Object.entries(pages)) {
			let entry = list.querySelector(`:scope > [data-lychgate="${text}"]`);
			if (!address || !like) {
				entry?.remove();
				continue;
			}
			entry ??= entryLike(item, like, text);
			const link = entry.querySelector('a');
			if (link.getAttribute('href') !== address) link.href = address;
			entries.push(entry);
		}
		const last = [...list.children].slice(-entries.length);
		if (entries.some((entry, i) => entry !== last[i])) list.append(...entries);
	};

	const drawn = new WeakMap(); // what is drawn in a box, by box

	// showThemes puts what is known of each theme into the list of those installed.
	let listed = '';
	const showThemes = () => {
		const places = location.hash.startsWith('#/settings') ? document.querySelectorAll(markup.theme) : [];
		let names = '';
		for (const place of places) {
			const name = place.id.slice('theme-'.length), theme = themes.get(name);
			names += name + '\n';
			let box = place.querySelector(':scope > .lychgate-theme');
			if (!theme) {
				box?.remove();
				continue;
			}
			if (!box) {
				box = elementOf('div', 'lychgate-theme', elementOf('div'), elementOf('span'));
				box.lastChild.setAttribute('role', 'status');
				place.append(box);
			}
			draw(box, theme);
		}
		if (names !== listed) {
			listed = names;
			if (names) ask();
		}
	};

	let lists = 0; // that were made, for their IDs

	// draw shows a theme in its box, where it is not what is there already.
	const draw = (box, theme) => {
		const content = JSON.stringify(theme);
		if (drawn.get(box) === content) return;
		drawn.set(box, content);
		const focused = box.contains(document.activeElement) ? document.activeElement.dataset.lychgate : undefined;
		const wasOpen = !!box.querySelector('[aria-expanded=true]');
		const name = ` of ${theme.name}`;
		const line = elementOf('div', '', 'Manifest Status: ');
		if (theme._errors.length > 0) {
			const list = listOf(theme), button = buttonOf('findings', elementOf('span', 'lychgate-link', theme.status), elementOf('span', 'lychgate-unseen', `: findings in the manifest${name}`));
			button.append(icon());
			list.id = `lychgate-findings-${++lists}`;
			list.hidden = !wasOpen;
			button.setAttribute('aria-expanded', String(wasOpen));
			button.setAttribute('aria-controls', list.id);
			button.addEventListener('click', () => {
				list.hidden = !list.hidden;
				button.setAttribute('aria-expanded', String(!list.hidden));
			});
			line.append(button, ' ', ...refreshOf(box, theme), list);
		} else {
			line.append(elementOf('span', 'lychgate-status', theme.status), ' ', ...refreshOf(box, theme));
		}
		box.firstChild.replaceWith(line);
		if (focused) line.querySelector(`[data-lychgate=${focused}]`)?.focus();
	};

	const buttonOf = (what, ...parts) => {
		const button = elementOf('button', '', ...parts);
		button.type = 'button';
		button.dataset.lychgate = what;
		return button;
	};

	// icon is an i in a circle.
	const icon = () => {
		const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg'), path = document.createElementNS(svg.namespaceURI, 'path');
		for (const [name, value] of Object.entries({viewBox: '0 0 16 16', width: '14', height: '14', 'aria-hidden': 'true'})) svg.setAttribute(name, value);
		for (const [name, value] of Object.entries({d: 'M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 1 0 0-13M8 7.3v4M8 4.6v.6', fill: 'none', stroke: 'currentColor', 'stroke-width': '1.4', 'stroke-linecap': 'round'})) path.setAttribute(name, value);
		svg.append(path);
		return svg;
	};

	// In a finding, text between backticks is code. Each text has a direction of its own (bdi).
	const listOf = theme => {
		const list = elementOf('ul');
		for (const {field, message, severity} of theme._errors) {
			const parts = message.split(/`([^`]*)`/).map((part, i) => i % 2 ? elementOf('code', '', part) : part);
			list.append(elementOf('li', '', elementOf('span', 'lychgate-severity', severity), ' ', elementOf('code', '', elementOf('bdi', '', field)), ' ', elementOf('bdi', '', ...parts)));
		}
		if (theme.more) list.append(elementOf('li', '', `And ${theme.more} more.`));
		return list;
	};

	// refreshOf makes the button only for a theme whose manifest is read from a repository.
	const refreshOf = (box, theme) => {
		if (!theme.refresh) return [];
		const button = buttonOf('refresh', elementOf('span', 'lychgate-link', 'Refresh'), elementOf('span', 'lychgate-unseen', ` the manifest of ${theme.name}`));
		const said = box.lastChild;
		button.addEventListener('click', async () => {
			if (button.ariaDisabled) return;
			button.ariaDisabled = 'true';
			said.textContent = 'Refreshing…';
			try {
				const response = await fetch(theme.refresh, {method: 'POST', headers: {Accept: 'application/json'}});
				const answer = await response.json().catch(() => ({}));
				said.textContent = response.ok ? `Refreshed: ${answer.status}` : `Not refreshed. ${answer.message ?? `The server answered ${response.status}.`}`;
			} catch {
				said.textContent = 'Not refreshed: the server cannot be reached. Try again.';
			}
			button.ariaDisabled = null;
			ask();
		});
		return [button];
	};

	// The desk leads back to where somebody was (desk.js).
	addEventListener('pagehide', () => {
		try {
			sessionStorage.setItem('lychgate-admin', location.hash);
		} catch {} // some browsers keep nothing
	});

	// Changes of the page are looked at once a frame, however many there are.
	let scheduled = false;
	const schedule = () => {
		if (scheduled) return;
		scheduled = true;
		requestAnimationFrame(() => {
			scheduled = false;
			try {
				showEntries();
				showThemes();
			} catch (error) {
				observer.disconnect(); // this is not the page that was expected
				console.warn('Lychgate', error);
			}
		});
	};
	const observer = new MutationObserver(schedule);
	observer.observe(document.body, {childList: true, subtree: true});

	// A theme was uploaded, activated or deleted.
	new PerformanceObserver(requests => {
		if (requests.getEntries().some(request => /\/api\/admin\/themes\/(?!active\/)[^?]/.test(request.name))) ask();
	}).observe({type: 'resource'});

	const style = new CSSStyleSheet();
	style.replaceSync(`
		.lychgate-theme { position: relative; font-size: 13px; line-height: 24px; overflow-wrap: anywhere; }
		.lychgate-theme button { display: inline-flex; align-items: center; gap: 4px; margin-inline-end: 12px; min-height: 24px; padding: 0; border: 0; background: none; color: inherit; font: inherit; cursor: pointer; }
		.lychgate-link { text-decoration: underline; text-underline-offset: 3px; }
		.lychgate-theme button:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; border-radius: 2px; }
		.lychgate-theme button[aria-disabled] { opacity: .5; }
		.lychgate-status { margin-inline-end: 12px; }
		.lychgate-severity { text-transform: capitalize; }
		.lychgate-theme ul { margin: 4px 0; padding-inline-start: 18px; line-height: 20px; list-style: disc; }
		.lychgate-theme ul[hidden] { display: none; }
		.lychgate-unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
	`);
	document.adoptedStyleSheets = [...document.adoptedStyleSheets, style];

	window[running] = ask;
	ask();
})();
