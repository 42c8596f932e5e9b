//! How many tenants there can be.

use authz::{IdentityStore, Tenant};
use domain::StoreError;

use crate::support::{Fixture, seq, tenant};

#[tokio::test]
async fn a_tenant_beyond_what_positions_can_number_is_refused() {
    let fixture = Fixture::new().await;
    fixture.raw().execute("UPDATE sqlite_sequence SET seq = (1 << 20) - 2 WHERE name = 'log_heads'", []).unwrap();
    let made = fixture.create_tenant("last").await;
    let over = Tenant { id: tenant("over"), ..made.clone() };
    let wanted = over.clone();
    let refused = fixture.admin(move |tx| {
        let wanted = wanted.clone();
        Box::pin(async move { tx.create_tenant(&wanted).await })
    });
    assert!(matches!(refused.await, Err(StoreError::Conflict(_))));
    assert_eq!(fixture.store.tenant(&over.id).await, Ok(None));
    let answer = sync::Append::append(&*fixture.store, &made.id, vec![fixture.event("x")]).await.unwrap();
    assert_eq!(answer.head, seq(1));
}
