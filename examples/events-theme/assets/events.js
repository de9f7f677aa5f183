// Shows what Lychgate knows of events beside Ghost. Values of editors become text, never markup.
(() => {
    'use strict';

    const language = document.documentElement.lang || undefined;

    // Shows an element whose <dd>, or itself, has some content: text or an element.
    const show = (element, content) => {
        if (!element || content === null || content === undefined || content === '') {
            return;
        }
        (element.querySelector('dd') ?? element).replaceChildren(content);
        element.hidden = false;
    };

    const format = (value, options) => {
        try {
            return new Intl.DateTimeFormat(language, options).format(value);
        } catch { // a browser that does not know the zone or the language
            return new Intl.DateTimeFormat(undefined, {...options, timeZone: undefined}).format(value);
        }
    };
    const day = text => format(new Date(text), {dateStyle: 'full', timeZone: 'UTC'});
    const moment = (text, timeZone) => format(new Date(text), {dateStyle: 'full', timeStyle: 'short', timeZone});

    // When the event is, in a zone: the reader's if there is none.
    const when = (event, zone) => {
        if (!event.start) {
            return '';
        }
        if (event.all_day) {
            return day(event.start);
        }
        const parts = [moment(event.start, zone)];
        if (event.end) {
            parts.push(format(new Date(event.end), {timeStyle: 'short', timeZone: zone}));
        }
        return parts.join(' – ');
    };

    // The zone that the editor chose. Without one, the times are in UTC.
    const zoneOf = event => event.event_time_zone || 'UTC';

    // When the event begins and is over. One without an end is over with its day.
    const begins = event => new Date(event.all_day ? `${event.start}T00:00` : event.start);
    const over = event => event.all_day ? new Date(`${event.end}T00:00`)
        : new Date(event.end ?? event.start.replace(/T[\d:]{8}/, 'T23:59:59'));

    const link = text => {
        if (!/^https?:\/\//i.test(text)) {
            return text;
        }
        const a = document.createElement('a');
        a.href = text;
        a.textContent = text.replace(/^https?:\/\//i, '');
        return a;
    };
    const picture = (text, {alt = ''} = {}) => {
        if (!/^https?:\/\//i.test(text)) {
            return '';
        }
        const img = document.createElement('img');
        img.src = text;
        img.alt = alt;
        return img;
    };
    const kinds = {
        url: link,
        image: picture,
        date: value => Number.isNaN(Date.parse(value)) ? value : day(value),
        toggle: value => typeof value === 'boolean' ? value ? 'Yes' : 'No' : value,
        euros: value => new Intl.NumberFormat(language, {style: 'currency', currency: 'EUR'}).format(value),
    };
    const shown = (element, value) => value === null || value === undefined || value === '' ? ''
        : kinds[element.dataset.kind]?.(value, element.dataset) ?? String(value);

    // The messaging state of a reader, as docs/events.md lists them.
    const stateOf = (event, member, now) => {
        if (event.start && over(event) <= now) {
            return 'event_passed';
        }
        if (event.deadline && new Date(event.deadline) <= now) {
            return 'registration_closed';
        }
        if (event.access !== 'free' && event.access !== 'paid') {
            return 'can_register';
        }
        if (!member) {
            return `login_required_${event.access}`;
        }
        return event.access === 'paid' && member !== 'paid' ? 'upgrade_required' : 'can_register';
    };

    // Counts down to the start, and shows nothing from then on.
    const countDown = (element, start) => {
        const seconds = Math.ceil((start - Date.now()) / 1000);
        element.hidden = !(seconds > 0);
        if (element.hidden) {
            return;
        }
        const units = [['day', Math.floor(seconds / 86400)], ['hour', Math.floor(seconds / 3600) % 24],
            ['minute', Math.floor(seconds / 60) % 60], ['second', seconds % 60]];
        element.textContent = units.map(([unit, n]) =>
            new Intl.NumberFormat(language, {style: 'unit', unit, unitDisplay: 'long'}).format(n)).join(' ');
        setTimeout(countDown, 1000, element, start);
    };

    const showEvent = (facts, event) => {
        const place = name => facts.querySelector(`[data-show="${name}"]`);
        place('cancelled').hidden = event.status !== 'cancelled';
        const there = when(event, zoneOf(event));
        show(place('when'), there && !event.all_day ? `${there} (${zoneOf(event)})` : there);
        if (!event.all_day && when(event) !== there) {
            show(place('yours'), when(event));
        }
        for (const name of ['location', 'platform_url', 'max_attendees']) {
            show(place(name), shown(place(name), event[name]));
        }
        show(place('deadline'), event.deadline && moment(event.deadline, zoneOf(event)));
        for (const element of facts.querySelectorAll('[data-field]')) {
            show(element, shown(element, event.fields[element.dataset.field]));
        }
        if (event.start && event.status !== 'cancelled') {
            countDown(place('countdown'), begins(event));
        }
    };

    // The theme's text for the reader's state is there at once. The editors' is fetched: it
    // is not in the page, which may be older than the Event Settings.
    const showMessage = async (facts, slug, event) => {
        if (event.status === 'cancelled') {
            return;
        }
        const state = stateOf(event, facts.dataset.member, Date.now());
        const element = facts.querySelector(`[data-state="${state}"]`);
        element.hidden = false;
        const response = await fetch(`${facts.dataset.events}/${encodeURIComponent(slug)}`);
        if (response.ok) {
            const {messages} = await response.json();
            show(element, messages[state]);
        }
    };

    const card = event => {
        const item = document.createElement('li');
        const article = item.appendChild(document.createElement('article'));
        article.className = 'card';
        article.append(picture(event.feature_image));
        const a = article.appendChild(document.createElement('h3')).appendChild(document.createElement('a'));
        a.href = event.url;
        a.textContent = event.name;
        const lines = [event.status === 'cancelled' ? 'Cancelled' : '', when(event, zoneOf(event)), event.location, event.description];
        for (const line of lines.filter(Boolean)) {
            article.appendChild(document.createElement('p')).textContent = line;
        }
        return item;
    };

    const showList = async (section, from) => {
        const response = await fetch(`${section.dataset.upcoming}?limit=6&from=${from}`);
        if (!response.ok) {
            return; // what the server has written stays
        }
        const {events, next} = await response.json();
        const list = section.querySelector('ul');
        if (from === 0) {
            list.replaceChildren();
            section.querySelector('[data-none]').hidden = events.length > 0;
        }
        list.append(...events.map(card));
        const more = section.querySelector('[data-more]');
        more.hidden = next === null;
        more.onclick = () => showList(section, next);
    };

    const facts = document.querySelector('[data-events]');
    const content = document.querySelector('#lychgate-event')?.textContent;
    if (facts && content) {
        const event = JSON.parse(content);
        showEvent(facts, event);
        showMessage(facts, facts.closest('[data-event]').dataset.event, event).catch(() => {});
    }
    for (const section of document.querySelectorAll('[data-upcoming]')) {
        showList(section, 0).catch(() => {});
    }
})();
