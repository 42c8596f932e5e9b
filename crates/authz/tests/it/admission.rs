//! Delivery mode: what a reader is shown, at the moment it is shown.

use authz::{Admission, Permission, PrincipalKind, PrincipalPatch, Role};
use domain::EventOrigin;

use crate::world::{World, id, published};

fn sees(admission: &mut Admission, channel: Option<&str>, audience: &[&str]) -> bool {
    admission.admits(&published(channel, audience, EventOrigin::Published))
}

fn sees_of_server(admission: &mut Admission, audience: &[&str]) -> bool {
    admission.admits(&published(None, audience, EventOrigin::Server))
}

#[tokio::test]
async fn readers_of_the_channel_and_the_audience_see_an_event() {
    let world = World::new().await;
    world.channels(&["support/general", "support/other", "ops/general"]).await;
    let ann = world.member("ann").await;
    world.grant("ann", "support/general", Permission::Read).await;
    let mut admission = world.authorizer.admission(&ann).await.unwrap();
    assert!(sees(&mut admission, Some("support/general"), &[]));
    assert!(sees(&mut admission, Some("support/general"), &["bob"]));
    assert!(sees(&mut admission, Some("ops/general"), &["bob", "ann"]));
    assert!(sees(&mut admission, None, &["ann"]));
    for (channel, audience) in [(Some("support/other"), &[][..]), (Some("ops/general"), &["bob"]), (None, &["bob"]), (None, &[])] {
        assert!(!sees(&mut admission, channel, audience), "{channel:?} {audience:?}");
    }
}

#[tokio::test]
async fn a_grant_on_a_space_or_on_everything_reaches_its_channels() {
    let world = World::new().await;
    world.channels(&["support/general", "ops/general"]).await;
    let (ann, bob) = (world.member("ann").await, world.member("bob").await);
    world.grant("ann", "support", Permission::Post).await;
    world.grant("bob", "*", Permission::Read).await;
    let (mut ann, mut bob) = (world.authorizer.admission(&ann).await.unwrap(), world.authorizer.admission(&bob).await.unwrap());
    assert!(sees(&mut ann, Some("support/general"), &[]) && !sees(&mut ann, Some("ops/general"), &[]));
    assert!(sees(&mut bob, Some("support/general"), &[]) && sees(&mut bob, Some("ops/general"), &[]));
    assert!(!sees(&mut bob, None, &["ann"]), "without a channel only the audience");
}

#[tokio::test]
async fn the_servers_own_events_are_seen_by_their_audience_and_by_owners_and_operators() {
    let world = World::new().await;
    let (operator, _) = world.principal("olga", PrincipalKind::Person, Role::Operator).await;
    let member = world.member("ann").await;
    world.grant("ann", "*", Permission::Manage).await;
    for caller in [&world.owner, &operator] {
        let mut admission = world.authorizer.admission(caller).await.unwrap();
        assert!(sees_of_server(&mut admission, &["somebody"]));
        assert!(!sees(&mut admission, None, &["somebody"]), "what a principal addressed to another stays between them");
    }
    let mut admission = world.authorizer.admission(&member).await.unwrap();
    assert!(sees_of_server(&mut admission, &["ann"]));
    assert!(!sees_of_server(&mut admission, &["somebody"]));
}

#[tokio::test]
async fn a_revoked_grant_filters_from_the_next_event_on() {
    let world = World::new().await;
    world.channels(&["support/general"]).await;
    let ann = world.member("ann").await;
    let grant = world.grant("ann", "support/general", Permission::Read).await;
    let (admin, owner) = world.elsewhere().await;
    world.start_tail().await;
    let mut admission = world.authorizer.admission(&ann).await.unwrap();
    assert!(sees(&mut admission, Some("support/general"), &[]));
    admin.revoke_grant(&owner, grant.id).await.unwrap();
    world.observe().await;
    assert!(!sees(&mut admission, Some("support/general"), &[]));
    world.grant("ann", "support", Permission::Read).await;
    assert!(sees(&mut admission, Some("support/general"), &[]));
}

#[tokio::test]
async fn a_disabled_or_deleted_principal_is_shown_nothing() {
    let world = World::new().await;
    world.channels(&["support/general"]).await;
    let ann = world.member("ann").await;
    world.grant("ann", "*", Permission::Read).await;
    let mut admission = world.authorizer.admission(&ann).await.unwrap();
    let mut all = || {
        [sees(&mut admission, Some("support/general"), &[]), sees(&mut admission, None, &["ann"]), sees_of_server(&mut admission, &["ann"])]
    };
    assert_eq!(all(), [true; 3]);
    let patch = |enabled| PrincipalPatch { enabled: Some(enabled), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), patch(false)).await.unwrap();
    assert_eq!(all(), [false; 3]);
    world.admin.update_principal(&world.owner, &id("ann"), patch(true)).await.unwrap();
    assert_eq!(all(), [true; 3]);
    world.admin.delete_principal(&world.owner, &id("ann")).await.unwrap();
    assert_eq!(all(), [false; 3]);
}

#[tokio::test]
async fn a_new_operator_sees_the_servers_own_events_at_once() {
    let world = World::new().await;
    let ann = world.member("ann").await;
    let mut admission = world.authorizer.admission(&ann).await.unwrap();
    assert!(!sees_of_server(&mut admission, &["somebody"]));
    let patch = PrincipalPatch { role: Some(Role::Operator), ..PrincipalPatch::default() };
    world.admin.update_principal(&world.owner, &id("ann"), patch).await.unwrap();
    assert!(sees_of_server(&mut admission, &["somebody"]));
}

#[tokio::test]
async fn admission_leaves_no_trace_in_the_audit_log() {
    let world = World::new().await;
    let ann = world.member("ann").await;
    let before = world.store.state.lock().unwrap().audit.len();
    let mut admission = world.authorizer.admission(&ann).await.unwrap();
    for _ in 0..100 {
        assert!(!sees(&mut admission, Some("support/general"), &[]));
    }
    world.authorizer.flush().await;
    assert_eq!(world.store.state.lock().unwrap().audit.len(), before);
    assert_eq!(world.authorizer.metrics().denials.get(), 0);
}
