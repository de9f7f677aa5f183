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
            const last = new Date(new Date(event.end) - 86400000).toISOString().slice(0, 10);
            return [...new Set([event.start, last])].map(day).join(' – ');
        }
        const parts = [moment(event.start, zone)];
        if (event.end) {
            // The end of a day is the last minute of it.
            const end = new Date(new Date(event.end) - (event.event_time_end ? 0 : 60000));
            const date = at => format(at, {dateStyle: 'full', timeZone: zone});
            const isSameDay = date(new Date(event.start)) === date(end);
            parts.push(format(end, {...!isSameDay && {dateStyle: 'full'}, timeStyle: 'short', timeZone: zone}));
        }
        return parts.join(' – ');
    };

    // The zone that the editor chose. Without one, the times are in UTC.
    const zoneOf = event => event.event_time_zone || 'UTC';

    // The last moment to register. A deadline without a time is the end of its day.
    const deadline = (event, zone) => {
        const end = new Date(event.deadline);
        const clock = format(end, {hour: '2-digit', minute: '2-digit', hourCycle: 'h23', numberingSystem: 'latn', timeZone: zone});
        return /^0?0\D00/.test(clock) ? format(end - 1, {dateStyle: 'full', timeZone: zone}) : moment(end, zone);
    };

    // When the event begins.
    const begins = event => new Date(event.all_day ? `${event.start}T00:00` : event.start);

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
        show(place('deadline'), event.deadline && deadline(event, zoneOf(event)));
        for (const element of facts.querySelectorAll('[data-field]')) {
            show(element, shown(element, event.fields[element.dataset.field]));
        }
        if (event.start && event.status !== 'cancelled') {
            countDown(place('countdown'), begins(event));
        }
    };

    // Shows how the event stands for the reader, whenever that changes.
    const showRegistration = (section, element) => {
        const {state, message, loading, places_left: left, waiting, labels} = element.state;
        const stands = [waiting?.join_as ?? state, waiting?.since && 'waiting']; // who may join the waiting list does so as others register
        section.hidden = !state;
        section.querySelector('[data-message]').textContent = message ?? '';
        const places = section.querySelector('[data-places]');
        places.hidden = !(left > 0 && left <= 10);
        places.querySelector('span').textContent = left;
        for (const control of section.querySelectorAll('[data-state]')) {
            control.hidden = !control.dataset.state.split(' ').some(state => stands.includes(state));
            control.disabled = loading;
        }
        for (const name of ['register', 'cancel']) { // such as "Join the waiting list"
            section.querySelector(`[data-press=${name}]`).textContent = labels?.[name] ?? '';
        }
    };

    const takeRegistrations = section => {
        const element = section.querySelector('lychgate-event');
        element.addEventListener('statechange', () => showRegistration(section, element));
        section.querySelector('[data-press=register]').onclick = () => element.register();
        section.querySelector('[data-press=cancel]').onclick = () => element.cancel();
        section.querySelector('form').onsubmit = event => {
            event.preventDefault();
            element.sendLink(event.target.elements.email.value);
        };
        if (element.state) { // it was there before this script
            showRegistration(section, element);
        }
    };

    const facts = document.querySelector('[data-event]');
    const content = document.querySelector('script#lychgate-event')?.textContent;
    if (facts && content) {
        showEvent(facts, JSON.parse(content));
    }
    for (const section of document.querySelectorAll('[data-register]')) {
        takeRegistrations(section);
    }
})();
