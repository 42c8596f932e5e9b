DELETE FROM inbox_claims
