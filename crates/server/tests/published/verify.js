// Verifies rings with the published JavaScript package, and that it refuses changed ones.
const assert = require("node:assert");
const { Webhook, WebhookVerificationError } = require("standardwebhooks");

function verifies(webhook, headers, body) {
  try {
    webhook.verify(body, headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const webhook = new Webhook(given.secret);
assert(given.rings.length > 0, "no ring was given");
for (const { headers, body } of given.rings) {
  assert(verifies(webhook, headers, body), `not verified: ${headers["webhook-id"]}`);
  assert(!verifies(webhook, headers, body + " "), "a changed body was verified");
  assert(!verifies(webhook, { ...headers, "webhook-id": "msg_other" }, body), "another id was verified");
  const later = String(Number(headers["webhook-timestamp"]) + 1);
  assert(!verifies(webhook, { ...headers, "webhook-timestamp": later }, body), "another time was verified");
  assert(!verifies(new Webhook("whsec_" + "A".repeat(32)), headers, body), "another secret verified it");
}
console.log(`javascript: ${given.rings.length} verified`);
