// desk-labels takes labels one by one, and completes them. Its textarea has one on each line.
customElements.define('desk-labels', class extends HTMLElement {
	#timer = 0;
	#asked = 0;

	connectedCallback() {
		const area = this.querySelector('textarea');
		if (this.querySelector('ul')) return;
		const list = document.createElement('ul'), input = document.createElement('input'), add = buttonOf('Add'), line = document.createElement('div'), options = document.createElement('datalist');
		list.className = 'chips';
		line.className = 'line';
		options.id = `${area.id}-labels`;
		input.autocomplete = 'off';
		input.setAttribute('list', options.id);
		for (const name of ['id', 'aria-describedby', 'aria-invalid']) { // what leads to the field leads to the input now
			if (area.hasAttribute(name)) input.setAttribute(name, area.getAttribute(name));
			area.removeAttribute(name);
		}
		area.hidden = true;
		area.nextElementSibling.remove(); // one on each line
		add.append(Object.assign(textOf('span', ' the label'), {className: 'unseen'}));
		line.append(input, add, options);
		this.append(list, line);
		const labels = () => area.value.split('\n').map(text => text.trim()).filter(Boolean);
		const set = texts => {
			area.value = [...new Set(texts)].join('\n');
			area.dispatchEvent(new Event('input', {bubbles: true}));
			show();
		};
		const show = () => list.replaceChildren(...labels().map(text => {
			const item = document.createElement('li'), remove = buttonOf('×');
			remove.append(Object.assign(textOf('span', ` Remove ${text}`, 120), {className: 'unseen'}));
			remove.addEventListener('click', () => {
				set(labels().filter(other => other !== text));
				input.focus();
			});
			item.append(textOf('bdi', text, 120), remove);
			return item;
		}));
		const take = () => {
			if (input.value.trim()) set([...labels(), input.value.trim()]);
			input.value = '';
			input.focus();
		};
		add.addEventListener('click', take);
		for (const name of ['keydown', 'keypress']) { // Chromium's list of suggestions takes the first of the two
			input.addEventListener(name, event => {
				if (event.key !== 'Enter') return;
				event.preventDefault(); // which would send the form
				take();
			});
		}
		input.addEventListener('input', event => {
			event.stopPropagation(); // it is no change yet
			clearTimeout(this.#timer);
			this.#timer = setTimeout(() => this.#complete(input.value, options), 200);
		});
		area.addEventListener('restore', show);
		show();
	}

	disconnectedCallback() { clearTimeout(this.#timer); }

	async #complete(text, options) {
		const asked = ++this.#asked;
		try {
			const response = await fetch(`event-labels?${new URLSearchParams({q: text})}`, {headers: {Accept: 'application/json'}});
			if (!response.ok) return;
			const {labels} = await response.json();
			if (asked === this.#asked) options.replaceChildren(...array(labels).slice(0, 20).map(value => Object.assign(document.createElement('option'), {value})));
		} catch {} // labels can be typed without
	}
});
