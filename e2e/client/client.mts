// Calls an edge as a theme and a CRM do, with the client that openapi-typescript
// generates from docs/openapi.yaml:
//
//	node client.mjs <URL of the edge> <integration key>
//
// It ends with status 1 at the first answer that differs from the one below.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [baseUrl, key] = process.argv.slice(2);
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const json = { "content-type": "application/json" };
const anyOrigin = { ...json, "access-control-allow-origin": "*" };
const noStore = { ...json, "cache-control": "no-store", "x-content-type-options": "nosniff" };

// same compares a whole answer, without the headers that any server sends. The
// document must allow the body, or this does not compile.
function same<Data, Failure>(
	answer: { data?: Data; error?: Failure; response: Response },
	status: number,
	headers: Record<string, string>,
	body: NoInfer<Data | Failure>,
) {
	const got = Object.fromEntries(answer.response.headers);
	for (const name of ["content-length", "date", "server"]) delete got[name];
	assert.deepEqual([answer.response.status, got, answer.data ?? answer.error], [status, headers, body]);
}

function tagOf(response: Response): string {
	const tag = response.headers.get("ETag") ?? "";
	assert.match(tag, /^"[0-9a-f]{24}"$/);
	return tag;
}

// What the document does not allow does not compile.
export const refused = [
	// @ts-expect-error: no domain
	() => api.GET("/ghost/inbox-provider"),
	// @ts-expect-error: no email
	() => api.POST("/integration/members", { body: { name: "Jane" } }),
	// @ts-expect-error: null, where that is refused
	() => api.PUT("/integration/members/{identifier}", { params: { path: { identifier: "x" } }, body: { note: null } }),
	// @ts-expect-error: there is no list
	() => api.GET("/integration/members"),
];

// What it allows compiles. This is not sent, because it needs a Ghost.
export const allowed = [
	() =>
		api.POST("/ghost/lychgate/themes/{theme}/events/validate", {
			params: { path: { theme: "nightly" } },
			body: { type: "webinar", values: { name: "An evening", seats: 20 } },
		}),
];

const lookup = (domain: string) =>
	api.GET("/ghost/inbox-provider", { params: { query: { domain } }, headers: { Accept: "application/json" } });
same(await lookup("googlemail.com"), 200, { ...anyOrigin, "cache-control": "public, max-age=86400" }, { provider: "gmail" });
const singleWord = "The domain is a single word: at least one dot is needed, as in example.com.";
same(await lookup("word"), 422, { ...anyOrigin, ...noStore, vary: "Accept" }, { message: singleWord, errors: { domain: [singleWord] } });

const email = "jane+crm@example.com"; // whose plus must stay one in a path
const one = { params: { path: { identifier: email } } };
const create = () => api.POST("/integration/members", { body: { email, name: "Jane Doe", labels: ["VIP"] } });
const read = () => api.GET("/integration/members/{identifier}", one);
const update = (tag: string) =>
	api.PUT("/integration/members/{identifier}", {
		params: { ...one.params, header: { "If-Match": tag } },
		body: { is_subscribed: false, labels: ["VIP", "fair"] },
	});
const remove = (tag: string) =>
	api.DELETE("/integration/members/{identifier}", { params: { ...one.params, header: { "If-Match": tag } } });

const created = await create();
assert(created.data?.success, JSON.stringify(created));
const { guid, created_at } = created.data.data;
assert.match(guid, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const member = {
	guid, email, name: "Jane Doe", is_subscribed: true, note: "", labels: ["VIP"], tier_id: null, member_id: null,
	status: "free", created_at, updated_at: created_at,
} satisfies components["schemas"]["Member"];
const firstTag = tagOf(created.response);
same(created, 200, { ...noStore, etag: firstTag }, { success: true, data: member, message: "Member created successfully." });
same(await create(), 200, noStore, { success: false, message: "The email is already taken.", code: "email_taken" });
same(await read(), 200, { ...noStore, etag: firstTag }, { success: true, data: member, message: "Member retrieved successfully." });

const updated = await update(firstTag);
assert(updated.data?.success, JSON.stringify(updated));
const { updated_at } = updated.data.data;
assert(updated_at >= created_at, updated_at);
const changed = { ...member, is_subscribed: false, labels: ["VIP", "fair"], updated_at };
const secondTag = tagOf(updated.response);
assert.notEqual(secondTag, firstTag);
same(updated, 200, { ...noStore, etag: secondTag }, { success: true, data: changed, message: "Member updated successfully." });
same(await read(), 200, { ...noStore, etag: secondTag }, { success: true, data: changed, message: "Member retrieved successfully." });

const outdated = { success: false, message: "The member was changed since it was read. Read it again.", code: "changed" } as const;
same(await update(firstTag), 412, noStore, outdated);
same(await remove(firstTag), 412, noStore, outdated);

same(await remove(secondTag), 200, noStore, { success: true, data: [], message: "Member deleted successfully." });
same(await read(), 404, noStore, { success: false, message: "Member not found.", code: "not_found" });

const tier = { params: { path: { identifier: "joe@example.com" } } };
const linked = await api.POST("/integration/members", { body: { email: "joe@example.com", tier_id: "prod_1" } });
assert.equal(linked.data?.success && linked.data.data.tier_id, "prod_1");
const kept = await api.PUT("/integration/members/{identifier}", { ...tier, body: { name: "Joe" } });
assert.equal(kept.data?.success && kept.data.data.tier_id, "prod_1");
const cleared = await api.PUT("/integration/members/{identifier}", { ...tier, body: { tier_id: null } });
assert.equal(cleared.data?.success && cleared.data.data.tier_id, null);
