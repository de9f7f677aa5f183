/** Types of event.js, which draws an event on its page. See docs/event_page.md */

export type State = 'can_register' | 'login_required_free' | 'login_required_paid' | 'upgrade_required' | 'registered' | 'registration_closed' | 'event_passed';

/** An event, as its page and the list of events have it. */
export interface PublicEvent {
	id: string;
	/** The key of its type in the theme's manifest. */
	type: string;
	status: 'published' | 'cancelled';
	name: string;
	description: string;
	feature_image: string;
	/** Date and times as the editor wrote them, or "". */
	event_date: string;
	event_time_start: string;
	event_time_end: string;
	/** Missing in pages that were written before there was one. */
	event_date_end?: string;
	event_time_zone: string;
	/** RFC 3339, or a date if `all_day`: then `end` is the day after the last one. */
	start: string | null;
	end: string | null;
	all_day: boolean;
	deadline: string | null;
	location: string;
	/** Only if `access` is `anyone`. */
	platform_url?: string;
	max_attendees: number | null;
	access: 'anyone' | 'free' | 'paid' | '';
	/** The custom fields that are filled, by their keys. */
	fields: Record<string, string | number | boolean>;
	/** What the custom fields are called that the page shows, in their order. Missing if there are none. */
	labels?: Record<string, string>;
	updated_at: string;
	/** Not in the page itself. */
	slug?: string;
	url?: string;
	/** Of a single event from the list's address. */
	messages?: Partial<Record<State, string>>;
}

/** What the edge says of the reader. */
export interface Registration {
	/** "" where nobody can register. */
	state: State | '';
	/** What to tell the reader: Event Settings', or the page's own text in its language. */
	message: string;
	reason?: 'deadline' | 'full' | 'cancelled';
	places_left: number | null;
	deadline: string | null;
	registered_at: string | null;
	platform_url?: string;
	/** How the reader stands on the waiting list. Missing where nobody can wait, and the reader does not. */
	waiting?: Waiting;
	/** When and where the event was when the reader registered, if that has changed. */
	moved_from?: Pick<PublicEvent, 'all_day' | 'event_time_end' | 'location'> & {start: string; end: string};
	/** Whether a guest is asked for their name. */
	ask_name?: 'optional' | 'required';
	/** Whether a guest who becomes a member gets newsletters unless they say otherwise. Missing if there are none. */
	newsletters?: boolean;
}

export interface Waiting {
	/** RFC 3339, null for a reader who does not wait. */
	since: string | null;
	/** How many wait before the reader, or at all. */
	ahead: number;
	/** A place is kept for the reader until then: `register()` takes it. */
	offered_until?: string;
	/** How a reader joins who may: by `register()`, or as a guest by `sendLink()`. */
	join_as?: 'can_register' | 'login_required_free';
}

export interface Calendars {
	ics?: string;
	google?: string;
	outlook?: string;
	yahoo?: string;
}

/** `state` is missing until the edge has said something. */
export type EventState = Readonly<{event: PublicEvent; calendars: Calendars; loading: boolean} & Partial<Registration>>;

export interface LychgateEventElement extends HTMLElement {
	/** Another object after each `statechange`. */
	readonly state: EventState;
	/** These promise whether it is done. Where there is `waiting`, they are about the waiting list. */
	register(): Promise<boolean>;
	cancel(): Promise<boolean>;
	/** Has a link mailed to a guest, which registers them. */
	sendLink(email: string, name?: string, newsletters?: boolean): Promise<boolean>;
}

declare global {
	interface HTMLElementTagNameMap { 'lychgate-event': LychgateEventElement; 'lychgate-events': HTMLElement }
	interface HTMLElementEventMap { 'statechange': CustomEvent<null> }
}
