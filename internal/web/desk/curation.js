// slotType is the type of what is carried while a post is dragged.
const slotType = 'application/x-lychgate-slot';

// desk-slots lets a post be dragged to another slot: the two change places. Each step is
// read out.
customElements.define('desk-slots', class extends HTMLElement {
	#over = null; // the slot that a post is over
	#dropped = false;

	connectedCallback() {
		for (const slot of this.querySelectorAll('.slot')) {
			const post = slot.querySelector(':scope > .post');
			if (post) {
				post.draggable = true;
				post.addEventListener('dragstart', event => {
					event.dataTransfer.setData(slotType, slot.dataset.slot);
					event.dataTransfer.effectAllowed = 'move';
					this.#dropped = false;
					announce(`The post of ${labelOf(slot)} is dragged.`);
				});
				post.addEventListener('dragend', () => {
					this.#leave(this.#over);
					if (!this.#dropped) announce('Dragging was cancelled. Nothing has changed.');
				});
			}
			slot.addEventListener('dragover', event => {
				if (!event.dataTransfer.types.includes(slotType)) return;
				event.preventDefault();
				this.#enter(slot);
			});
			slot.addEventListener('dragleave', event => {
				if (!slot.contains(event.relatedTarget)) this.#leave(slot);
			});
			slot.addEventListener('drop', event => this.#drop(event, slot));
		}
	}

	#enter(slot) {
		if (slot === this.#over) return; // it is told again and again
		this.#leave(this.#over);
		this.#over = slot;
		slot.classList.add('over');
		announce(`Over ${labelOf(slot)}.`);
	}

	#leave(slot) {
		slot?.classList.remove('over');
		if (slot === this.#over) this.#over = null;
	}

	#drop(event, slot) {
		this.#leave(slot);
		const from = event.dataTransfer.getData(slotType);
		if (!from) return;
		event.preventDefault();
		this.#dropped = true;
		if (from === slot.dataset.slot) {
			announce(`Dropped on ${labelOf(slot)}, where it was. Nothing has changed.`);
			return;
		}
		announce(`Dropped on ${labelOf(slot)}.`);
		this.closest('desk-page').send('curation', {theme: this.getAttribute('theme'), slot: from, with: slot.dataset.slot});
	}
});

const labelOf = slot => slot.querySelector('h3').textContent;
