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

customElements.define('desk-image', class extends HTMLElement {
	#input;
	#said;
	#crop;
	#remove;
	#source = null; // the file that was cut, and the address of what came out

	connectedCallback() {
		this.#input = this.querySelector('[name]');
		if (!this.getAttribute('to') || this.querySelector('.line')) return;
		const line = document.createElement('div'), label = textOf('label', 'Upload'), file = document.createElement('input');
		line.className = 'line';
		Object.assign(file, {type: 'file', accept: 'image/jpeg,image/png,image/webp,image/gif,image/avif'});
		label.className = 'button file';
		label.append(Object.assign(textOf('span', ` a picture for ${this.getAttribute('label')}`), {className: 'unseen'}), file);
		this.#said = document.createElement('p');
		this.#said.className = 'said';
		this.#said.setAttribute('role', 'status');
		this.#crop = buttonOf('Crop again');
		this.#remove = buttonOf('Remove');
		for (const button of [this.#crop, this.#remove]) button.append(Object.assign(textOf('span', ` the picture of ${this.getAttribute('label')}`), {className: 'unseen'}));
		this.#crop.addEventListener('click', () => this.#cropAgain());
		this.#remove.addEventListener('click', () => {
			this.#set('');
			this.#say('The picture was removed.');
			file.focus();
		});
		line.append(label, this.#crop, this.#remove, this.#said);
		this.append(line);
		file.addEventListener('change', async () => {
			const [chosen] = file.files;
			file.value = '';
			if (chosen) await this.#take(chosen, file);
		});
		for (const name of ['change', 'restore']) this.#input.addEventListener(name, () => this.#show());
		this.#input.addEventListener('input', () => this.#offer());
		this.#offer();
	}

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
		const image = Object.assign(new Image(240, 126), {src: URL.createObjectURL(uploaded), alt: ''});
		for (const name of ['load', 'error']) image.addEventListener(name, () => URL.revokeObjectURL(image.src));
		this.prepend(image);
	}
});
