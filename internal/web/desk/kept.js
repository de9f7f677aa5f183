// What was typed into an event and is not saved yet is kept in the browser, until it is saved or
// discarded: for the editor who typed it alone, on this site, also in another tab and after a crash.

const keptMost = 20; // events; the oldest go
const keptLongest = 200000; // characters of one
const keptDays = 30;

// keptName begins the names of all that is kept.
const keptName = 'lychgate-event:';

// parseKept reads an entry, and returns null for one that is too old or not as it should be.
const parseKept = text => {
	const entry = parse(text);
	return entry?.typed && Date.now() - entry.at < keptDays * 864e5 ? entry : null;
};

// sweepKept drops what is too old, and the oldest of what is too many.
const sweepKept = () => {
	const names = Object.keys(localStorage).filter(name => name.startsWith(keptName));
	const at = name => parseKept(localStorage.getItem(name))?.at ?? 0;
	const sorted = names.map(name => [name, at(name)]).sort(([, a], [, b]) => b - a);
	for (const [i, [name, when]] of sorted.entries()) {
		if (!when || i >= keptMost) localStorage.removeItem(name);
	}
};

// keptOf keeps what an editor has typed and not saved, by an event's ID or new. owner is a name for
// the editor and the site. Some browsers refuse storage: then nothing is kept.
const keptOf = owner => ({
	get(key) {
		try {
			return parseKept(localStorage.getItem(`${keptName}${owner}:${key}`))?.typed ?? null;
		} catch {
			return null;
		}
	},

	// set reports whether the browser keeps it. Of what is too long, what was kept before stays.
	set(key, typed) {
		const name = `${keptName}${owner}:${key}`;
		try {
			const text = typed && JSON.stringify({at: Date.now(), typed});
			if (!text) localStorage.removeItem(name);
			else if (text.length > keptLongest) return false;
			else localStorage.setItem(name, text);
			sweepKept();
			return true;
		} catch {
			return !typed;
		}
	},
});

try { // each page of the desk drops what is too old
	sweepKept();
} catch {}
