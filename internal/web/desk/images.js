// desk-image uploads a picture, cut to shape, to where the platform takes it.

const maxPicture = 20 << 20; // bytes
const maxPixels = 50e6;

// openPicture rotates a picture as its EXIF orientation says. The message of an error is for people.
const openPicture = async file => {
	if (file.size > maxPicture) throw new Error(`The file has ${Math.ceil(file.size / (1 << 20))} MB. Choose one with 20 MB at most.`);
	if (/svg/i.test(file.type) || /\.svgz?$/i.test(file.name)) throw new Error('An SVG cannot be cut. Choose a JPEG, PNG or WebP.');
	let bitmap;
	try {
		bitmap = await createImageBitmap(file, {imageOrientation: 'from-image'});
	} catch {
		throw new Error('This file is not a picture that the browser can show. Choose a JPEG, PNG or WebP.');
	}
	if (bitmap.width * bitmap.height > maxPixels) {
		const megapixels = Math.round(bitmap.width * bitmap.height / 1e6);
		bitmap.close();
		throw new Error(`The picture has ${megapixels} megapixels. Choose one with 50 at most.`);
	}
	return bitmap;
};

// typeOf looks at the first bytes. "" means that the picture is saved in another format.
const typeOf = async file => {
	const bytes = [...new Uint8Array(await file.slice(0, 12).arrayBuffer())], starts = (at, ...some) => some.every((byte, i) => bytes[at + i] === byte);
	if (starts(0, 0xff, 0xd8, 0xff)) return 'image/jpeg';
	if (starts(0, 0x89, 0x50, 0x4e, 0x47)) return 'image/png';
	return starts(0, 0x52, 0x49, 0x46, 0x46) && starts(8, 0x57, 0x45, 0x42, 0x50) ? 'image/webp' : '';
};

const fileNameOf = (name, type) => `${name.replace(/\.[^.]*$/, '').slice(0, 100) || 'picture'}.${{'image/jpeg': 'jpg', 'image/webp': 'webp'}[type] ?? 'png'}`;

// isHere reports whether an address is one of this site.
const isHere = address => !!address && URL.canParse(address) && new URL(address).origin === location.origin;

// pictureIn finds a picture among what is dropped or pasted.
const pictureIn = data => [...data?.files ?? []].find(file => file.type.startsWith('image/')) ?? data?.files[0];

// Its field becomes a zone for a picture, which takes what is dropped or pasted there. The address is behind a button.
customElements.define('desk-image', class extends HTMLElement {
	#input;
	#file;
	#zone;
	#said;
	#crop;
	#remove;
	#source = null; // the file that was cut, and the address of what came out

	connectedCallback() {
		this.#input = this.querySelector('[name]');
		if (!this.getAttribute('to') || this.#zone) return;
		const label = this.getAttribute('label'), of = text => Object.assign(textOf('span', ` ${text}`), {className: 'unseen'});
		const choose = document.createElement('span'), name = textOf('span', 'Choose a picture'), line = document.createElement('div'), hint = textOf('span', 'or drop or paste it here');
		this.#zone = document.createElement('div');
		this.#zone.className = 'drop';
		this.#file = Object.assign(document.createElement('input'), {type: 'file', accept: 'image/jpeg,image/png,image/webp,image/gif,image/avif'});
		choose.className = 'button file';
		choose.append(name, this.#file);
		hint.className = 'hint muted';
		line.className = 'line';
		this.#said = document.createElement('p');
		this.#said.className = 'said';
		this.#said.setAttribute('role', 'status');
		this.#crop = buttonOf('Crop again');
		this.#remove = buttonOf('Remove');
		for (const button of [this.#crop, this.#remove]) button.append(of(`the picture of ${label}`));
		this.#crop.addEventListener('click', () => this.#cropAgain());
		this.#remove.addEventListener('click', () => {
			this.#set('');
			this.#say('The picture was removed.');
			this.#file.focus();
		});
		line.append(choose, hint, this.#crop, this.#remove, this.#said);
		this.#zone.append(...this.querySelectorAll('img'), line);
		this.prepend(this.#zone);
		this.#fold(label, of);
		const named = this.closest('.field').querySelector('label');
		named.id = `${this.#file.id}-label`;
		name.id = `${this.#file.id}-choose`;
		this.#file.setAttribute('aria-labelledby', `${named.id} ${name.id}`);
		this.#listen();
		for (const name of ['change', 'restore']) this.#input.addEventListener(name, () => this.#show());
		this.#input.addEventListener('input', () => this.#offer());
		this.#offer();
	}

	disconnectedCallback() { document.removeEventListener('paste', this.#paste); }

	// fold puts the address away, unless it is wrong or stands for a picture that is not shown, such as one of another host. What
	// leads to the field leads to the zone now.
	#fold(label, of) {
		const folded = document.createElement('details'), summary = textOf('summary', 'Use an address');
		summary.append(of(`for ${label}`));
		folded.className = 'address';
		folded.open = this.#input.hasAttribute('aria-invalid') || !!this.#input.value && !this.querySelector('img');
		folded.append(summary, this.#input);
		this.append(folded);
		for (const name of ['id', 'aria-describedby', 'aria-invalid']) {
			if (this.#input.hasAttribute(name)) this.#file.setAttribute(name, this.#input.getAttribute(name));
		}
		this.#input.removeAttribute('id');
		this.#input.setAttribute('aria-label', `Address of ${label}`);
	}

	#listen() {
		this.#file.addEventListener('change', async () => {
			const [chosen] = this.#file.files;
			this.#file.value = '';
			if (chosen) await this.#take(chosen, this.#file);
		});
		const over = isOver => this.#zone.classList.toggle('over', isOver);
		this.#zone.addEventListener('dragover', event => {
			if (!event.dataTransfer.types.includes('Files')) return;
			event.preventDefault();
			event.dataTransfer.dropEffect = 'copy';
			over(true);
		});
		this.#zone.addEventListener('dragleave', event => {
			if (!this.#zone.contains(event.relatedTarget)) over(false);
		});
		this.#zone.addEventListener('drop', event => {
			over(false);
			const file = pictureIn(event.dataTransfer);
			if (!file) return;
			event.preventDefault();
			this.#take(file, this.#file);
		});
		document.addEventListener('paste', this.#paste);
	}

	// paste takes a picture that is pasted into the zone, or, into the first one, where nothing has the focus that takes it.
	#paste = event => {
		const file = pictureIn(event.clipboardData), at = event.target.closest?.('desk-image');
		if (!file || document.querySelector('dialog[open]')) return;
		const isText = event.target.matches?.('textarea, select, input:not([type=file], [type=checkbox])');
		if (isText || (at ?? document.querySelector('desk-image')) !== this) return;
		event.preventDefault();
		this.#take(file, this.#file);
	};

	// offer shows the buttons that there is a picture for. One of another host cannot be read.
	#offer() {
		const address = this.#input.value.trim();
		this.#remove.hidden = !address;
		this.#crop.hidden = !isHere(address) && (!address || this.#source?.address !== address);
	}

	#set(address, file) {
		this.#input.value = address;
		this.#input.dispatchEvent(new Event('input', {bubbles: true}));
		this.#show(file);
	}

	// cropAgain cuts the file that was chosen once more, or else what was cut of it.
	async #cropAgain() {
		const address = this.#input.value.trim();
		if (this.#source?.address === address) {
			await this.#take(this.#source.file, this.#crop);
			return;
		}
		this.#say('Opening the picture…');
		try {
			const response = await fetch(address);
			if (!response.ok) throw new Error('The picture is not there any more. Upload one.');
			const blob = await response.blob();
			await this.#take(new File([blob], decodeURIComponent(new URL(address).pathname.split('/').pop()), {type: blob.type}), this.#crop);
		} catch (error) {
			this.#say(error instanceof TypeError ? 'The picture cannot be read. Upload it again.' : error.message);
		}
	}

	#say(...parts) { this.#said.replaceChildren(...parts); }

	async #take(file, from) {
		this.#say('Opening the picture…');
		let bitmap;
		try {
			bitmap = await openPicture(file);
		} catch (error) {
			this.#say(textOf('span', error.message));
			return;
		}
		this.#say('');
		const dialog = document.createElement('desk-crop');
		document.body.append(dialog);
		const wanted = {ratio: this.getAttribute('ratio'), minWidth: Number(this.getAttribute('min-width')), minHeight: Number(this.getAttribute('min-height'))};
		let cut = null;
		try {
			cut = await dialog.open(bitmap, file, wanted, this.getAttribute('phrase'));
		} catch {
			this.#say('The browser cannot cut this picture. Choose a smaller part of it, or another picture.');
		}
		dialog.remove();
		bitmap.close();
		from.focus();
		if (cut) await this.#send(cut, file);
	}

	async #send(file, source) {
		const body = new FormData();
		body.append('file', file, file.name);
		body.append('purpose', 'image');
		this.#say('Uploading…');
		try {
			const response = await fetch(this.getAttribute('to'), {method: 'POST', headers: {Accept: 'application/json'}, body});
			const answer = parse(await response.text());
			const url = array(answer?.images)[0]?.url;
			if (response.ok && typeof url === 'string') {
				this.#source = {file: source, address: url};
				this.#set(url, file);
				this.#say('The picture was uploaded.');
			} else if (response.status === 401 || response.status === 403) {
				this.#say('Not uploaded: sign in first, then choose the picture again. ', Object.assign(textOf('a', 'Sign in'), {href: document.querySelector('header .back').href, target: '_blank'}));
			} else {
				this.#say('Not uploaded: ', textOf('bdi', said(response.status, answer, 'The server')[0]));
			}
		} catch {
			this.#say('Not uploaded: the server cannot be reached. Try again.');
		}
	}

	// show shows the picture that was uploaded, and no longer the one before.
	#show(uploaded) {
		this.querySelector('img')?.remove();
		if (!uploaded) return;
		const image = Object.assign(new Image(240, 135), {src: URL.createObjectURL(uploaded), alt: ''});
		for (const name of ['load', 'error']) image.addEventListener(name, () => URL.revokeObjectURL(image.src));
		this.#zone.prepend(image);
	}
});
