"""Verifies rings with the published Python package, and that it refuses changed ones."""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def verifies(webhook, headers, body):
    try:
        webhook.verify(body, headers)
        return True
    except WebhookVerificationError:
        return False


def changed(headers, name, value):
    return {**headers, name: value}


given = json.load(sys.stdin)
webhook = Webhook(given["secret"])
assert given["rings"], "no ring was given"
for ring in given["rings"]:
    headers, body = ring["headers"], ring["body"].encode()
    assert verifies(webhook, headers, body), f"not verified: {headers['webhook-id']}"
    assert not verifies(webhook, headers, body + b" "), "a changed body was verified"
    assert not verifies(webhook, changed(headers, "webhook-id", "msg_other"), body), "another id was verified"
    later = str(int(headers["webhook-timestamp"]) + 1)
    assert not verifies(webhook, changed(headers, "webhook-timestamp", later), body), "another time was verified"
    assert not verifies(Webhook("whsec_" + "A" * 32), headers, body), "another secret verified it"
print(f"python: {len(given['rings'])} verified")
