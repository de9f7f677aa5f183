// Ghost asks get.geojs.io where each reader is who opens a mailed link. Where tests have no network, it tries for three
// seconds, and for six where the link signs up. It loads this before all else, and fails at once.
const dns = require("dns");
const { lookup } = dns;
dns.lookup = (host, ...rest) => {
	if (host === "get.geojs.io") {
		// Not a code with which Ghost would try again.
		return process.nextTick(rest.at(-1), Object.assign(new Error("tests do not ask where readers are"), { code: "ECANCELED" }));
	}
	return lookup(host, ...rest);
};
