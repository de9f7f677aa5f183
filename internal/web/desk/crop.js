// desk-crop is the Crop Image dialog: a frame over a picture, moved and sized with a pointer
// or with the arrow keys.

// maxSide bounds what is made, in pixels, unless a larger one is wanted. Browsers draw no more than maxArea, nor
// longer sides than longest.
const maxSide = 4096, maxArea = maxSide ** 2, longest = 16384;
const minFrame = 16;

// ratioOf reads width:height, and returns 0 for a free frame.
const ratioOf = text => {
	const [width, height] = String(text ?? '').split(':').map(Number);
	return width > 0 && height > 0 && Number.isFinite(width / height) ? width / height : 0;
};

// frameIn puts the largest frame of a ratio in the middle of a picture. Ratio 0 is the whole picture.
const frameIn = ({width, height}, ratio) => {
	const w = ratio ? Math.min(width, height * ratio) : width, h = ratio ? w / ratio : height;
	return {x: (width - w) / 2, y: (height - h) / 2, w, h};
};

// sizeOf enlarges a frame to the least width and height that are wanted. It shrinks one only to stay
// within maxSide or maxArea.
const sizeOf = ({w, h}, {minWidth, minHeight}) => {
	const wanted = Math.max((minWidth || 0) / w, (minHeight || 0) / h);
	const most = Math.min(Math.sqrt(maxArea / (w * h)), longest / Math.max(w, h));
	const scale = Math.min(Math.max(wanted, Math.min(1, maxSide / Math.max(w, h))), most);
	const whole = scale === most ? Math.floor : Math.round;
	return {width: Math.max(1, whole(w * scale)), height: Math.max(1, whole(h * scale))};
};

const between = (value, least, most) => Math.min(Math.max(value, least), Math.max(least, most));

const corners = {nw: 'top left', ne: 'top right', sw: 'bottom left', se: 'bottom right'};

customElements.define('desk-crop', class extends HTMLElement {
	#bitmap;
	#wanted;
	#ratio;
	#frame; // in pixels of the picture
	#box;
	#stage;

	// open shows a picture, and returns the file that was made of it, null for none. It throws
	// if the browser cannot make one.
	open(bitmap, file, wanted, phrase) {
		this.#bitmap = bitmap;
		this.#wanted = wanted;
		this.#ratio = ratioOf(wanted.ratio);
		this.#frame = frameIn(bitmap, this.#ratio);
		const dialog = this.#dialog(phrase);
		this.append(dialog);
		dialog.showModal();
		this.#draw();
		return new Promise(done => {
			dialog.addEventListener('close', () => done(dialog.returnValue === 'use' ? this.#cut(file) : null), {once: true});
		});
	}

	#dialog(phrase) {
		const dialog = document.createElement('dialog'), title = textOf('h2', 'Crop Image'), form = document.createElement('form');
		dialog.className = 'crop';
		title.id = 'crop-title';
		dialog.setAttribute('aria-labelledby', title.id);
		form.method = 'dialog';
		this.#stage = document.createElement('div');
		this.#stage.className = 'stage';
		this.#stage.append(this.#preview(), this.#makeFrame());
		const size = document.createElement('p');
		size.className = 'size';
		size.setAttribute('role', 'status');
		const use = Object.assign(textOf('button', 'Use this part'), {className: 'button primary', value: 'use'});
		const cancel = Object.assign(textOf('button', 'Cancel'), {className: 'button', value: ''});
		const buttons = document.createElement('p');
		buttons.className = 'buttons';
		buttons.append(use, cancel);
		form.append(title);
		if (phrase) form.append(textOf('p', `Recommended: ${phrase}`));
		const help = textOf('p', 'Drag the frame and its corners, or use the arrow keys; with Shift they go further.');
		help.className = 'muted';
		form.append(help, this.#stage, size, buttons);
		dialog.append(form);
		return dialog;
	}

	// preview is no larger than it is shown, to save memory.
	#preview() {
		const canvas = document.createElement('canvas'), scale = Math.min(1, 1200 / Math.max(this.#bitmap.width, this.#bitmap.height));
		canvas.width = Math.max(1, Math.round(this.#bitmap.width * scale));
		canvas.height = Math.max(1, Math.round(this.#bitmap.height * scale));
		canvas.getContext('2d').drawImage(this.#bitmap, 0, 0, canvas.width, canvas.height);
		canvas.setAttribute('role', 'img');
		canvas.setAttribute('aria-label', 'The picture');
		return canvas;
	}

	#makeFrame() {
		this.#box = document.createElement('div');
		this.#box.className = 'frame';
		const move = document.createElement('button');
		move.type = 'button';
		move.className = 'move';
		move.setAttribute('aria-label', 'Move the frame');
		this.#box.append(move);
		this.#handle(move, (start, dx, dy) => this.#move(start, dx, dy));
		for (const [corner, name] of Object.entries(corners)) {
			const handle = document.createElement('button');
			handle.type = 'button';
			handle.className = `corner ${corner}`;
			handle.setAttribute('aria-label', `Size the frame at the ${name}`);
			this.#box.append(handle);
			this.#handle(handle, (start, dx, dy) => this.#size(start, corner, dx, dy));
		}
		return this.#box;
	}

	// handle has an element change the frame, by so many pixels of the picture from where it
	// started.
	#handle(element, change) {
		element.addEventListener('pointerdown', down => {
			if (down.button !== 0) return;
			down.preventDefault();
			element.focus();
			element.setPointerCapture(down.pointerId);
			const start = {...this.#frame}, scale = this.#bitmap.width / this.#stage.getBoundingClientRect().width;
			const drag = event => {
				change(start, (event.clientX - down.clientX) * scale, (event.clientY - down.clientY) * scale);
				this.#draw();
			};
			const end = () => {
				for (const [name, listener] of [['pointermove', drag], ['pointerup', end], ['pointercancel', end]]) element.removeEventListener(name, listener);
			};
			for (const [name, listener] of [['pointermove', drag], ['pointerup', end], ['pointercancel', end]]) element.addEventListener(name, listener);
		});
		element.addEventListener('keydown', event => {
			const direction = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
			if (!direction) return;
			event.preventDefault();
			const step = Math.max(1, Math.max(this.#bitmap.width, this.#bitmap.height) / (event.shiftKey ? 10 : 100));
			change({...this.#frame}, direction[0] * step, direction[1] * step);
			this.#draw();
		});
	}

	#move(start, dx, dy) {
		this.#frame.x = between(start.x + dx, 0, this.#bitmap.width - start.w);
		this.#frame.y = between(start.y + dy, 0, this.#bitmap.height - start.h);
	}

	// size moves a corner; the one across stays.
	#size(start, corner, dx, dy) {
		const isWest = corner.endsWith('w'), isNorth = corner.startsWith('n');
		const roomX = isWest ? start.x + start.w : this.#bitmap.width - start.x, roomY = isNorth ? start.y + start.h : this.#bitmap.height - start.y;
		let w = start.w + (isWest ? -dx : dx), h = start.h + (isNorth ? -dy : dy);
		if (this.#ratio) {
			// What was moved further decides.
			if (Math.abs(dy) * this.#ratio > Math.abs(dx)) w = h * this.#ratio;
			w = between(w, Math.max(minFrame, minFrame * this.#ratio), Math.min(roomX, roomY * this.#ratio));
			w = Math.min(w, roomX, roomY * this.#ratio);
			h = w / this.#ratio;
		} else {
			w = Math.min(between(w, minFrame, roomX), roomX);
			h = Math.min(between(h, minFrame, roomY), roomY);
		}
		this.#frame = {x: isWest ? start.x + start.w - w : start.x, y: isNorth ? start.y + start.h - h : start.y, w, h};
	}

	#draw() {
		const {x, y, w, h} = this.#frame, {width, height} = this.#bitmap, percent = value => `${100 * value}%`;
		Object.assign(this.#box.style, {left: percent(x / width), top: percent(y / height), width: percent(w / width), height: percent(h / height)});
		const out = sizeOf(this.#frame, this.#wanted);
		const isLarger = out.width > Math.round(w) || out.height > Math.round(h);
		this.querySelector('.size').textContent = `${out.width} × ${out.height} px${isLarger ? `, scaled up from ${Math.round(w)} × ${Math.round(h)}` : ''}`;
	}

	// cut leaves the file as it is if the frame has the whole picture, and it is large enough.
	async #cut(file) {
		const {x, y, w, h} = this.#frame, {width, height} = this.#bitmap, out = sizeOf(this.#frame, this.#wanted);
		if (w === width && h === height && out.width === width && out.height === height) return file;
		const canvas = document.createElement('canvas');
		Object.assign(canvas, out);
		const context = canvas.getContext('2d');
		context.imageSmoothingQuality = 'high';
		context.drawImage(this.#bitmap, x, y, w, h, 0, 0, out.width, out.height);
		const type = await typeOf(file) || 'image/png'; // a browser that cannot write WebP makes a PNG
		const blob = await new Promise(done => canvas.toBlob(done, type, .9));
		if (!blob) throw new Error('there is not enough memory');
		return new File([blob], fileNameOf(file.name, blob.type), {type: blob.type});
	}
});
