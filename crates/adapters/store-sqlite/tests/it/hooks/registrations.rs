//! What is not told.

use super::unit;
use crate::support::Fixture;

#[tokio::test]
async fn a_url_and_a_secret_never_show_in_errors() {
    let fixture = Fixture::with_agents(&["alpha"]).await;
    let hook = fixture.hook_for("alpha").await;
    let refused = fixture.create_hook(&hook).await.unwrap_err();
    assert!(!format!("{refused:?} {refused}").contains("CANARY"));
    fixture.raw().execute("UPDATE hooks SET url = 'ftp://CANARY'", []).unwrap();
    assert_eq!(fixture.stored(&hook).await, None);
    let report = fixture.store.check().await.unwrap();
    assert!(!report.is_sound() && !format!("{report:?}").contains("CANARY"), "{report:?}");
    let counted = unit!(fixture, [hook], |tx| tx.count_hooks(&hook.tenant, &hook.agent));
    assert_eq!(counted, Ok((1, 1)), "what cannot be read still takes its place");
}
