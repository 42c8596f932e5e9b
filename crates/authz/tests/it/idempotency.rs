//! Repeated creating requests.

use std::sync::Arc;
use std::time::Duration;

use authz::{
    AdminError, IdempotencyKey, Idempotent, IdempotentAnswer, IssuedToken, Made, NewToken, Outcome, Principal, PrincipalKind, Role,
};

use crate::world::{World, id, made, new_principal};

fn keyed<T: 'static>(key: &str, request: u8, render: fn(&T) -> String) -> Idempotent<T> {
    let answer = Arc::new(move |made: &Made<T>| match made {
        Made::New(thing) => (201, render(thing)),
        Made::Present(thing) => (200, render(thing)),
    });
    Idempotent { key: IdempotencyKey::parse(key).unwrap(), request_hash: [request; 32], answer }
}

fn principal(key: &str, request: u8) -> Idempotent<Principal> {
    keyed(key, request, |principal: &Principal| format!(r#"{{"id":"{}"}}"#, principal.id))
}

fn token(key: &str) -> Idempotent<IssuedToken> {
    keyed(key, 1, |token: &IssuedToken| format!(r#"{{"token_id":"{}","secret_shown":true}}"#, token.record.id))
}

fn replayed<T>(outcome: Outcome<T>) -> IdempotentAnswer {
    match outcome {
        Outcome::Replayed(answer) => answer,
        Outcome::Done(_) => panic!("was done again"),
    }
}

#[tokio::test]
async fn a_repeat_is_answered_what_the_first_was_answered() {
    let world = World::new().await;
    let create =
        || world.admin.create_principal(&world.owner, new_principal("ann", PrincipalKind::App, Role::Member), Some(principal("k", 1)));
    made(create().await.unwrap());
    let answer = replayed(create().await.unwrap());
    assert_eq!((answer.status, answer.body.as_str()), (201, r#"{"id":"ann"}"#));
}

#[tokio::test]
async fn the_same_key_with_another_request_is_a_conflict_and_does_nothing() {
    let world = World::new().await;
    let new = |name| new_principal(name, PrincipalKind::App, Role::Member);
    made(world.admin.create_principal(&world.owner, new("ann"), Some(principal("k", 1))).await.unwrap());
    let error = world.admin.create_principal(&world.owner, new("bob"), Some(principal("k", 2))).await.unwrap_err();
    assert_eq!(error, AdminError::IdempotencyConflict);
    assert_eq!(world.admin.principal(&world.owner, &id("bob")).await.unwrap_err(), AdminError::NotFound);
}

#[tokio::test]
async fn the_stored_answer_holds_no_secret() {
    let world = World::new().await;
    let name = id("owner");
    let create = || world.admin.create_token(&world.owner, &name, NewToken::default(), Some(token("k")));
    let first = made(create().await.unwrap());
    let answer = replayed(create().await.unwrap());
    assert!(answer.body.contains(r#""secret_shown":true"#) && answer.body.contains(&first.record.id.to_string()));
    let answers = format!("{:?}", world.store.state.lock().unwrap().answers);
    assert!(!answers.contains(first.secret.reveal()));
    assert_eq!(world.admin.tokens(&world.owner, &id("owner"), &authz::Keyset { after: None, limit: 9 }).await.unwrap().items.len(), 2);
}

#[tokio::test]
async fn keys_are_each_principals_own_and_expire() {
    let world = World::new().await;
    let (olga, _) = world.principal("olga", PrincipalKind::Person, Role::Operator).await;
    let new = |name| new_principal(name, PrincipalKind::App, Role::Member);
    made(world.admin.create_principal(&world.owner, new("a"), Some(principal("k", 1))).await.unwrap());
    made(world.admin.create_principal(&olga, new("b"), Some(principal("k", 2))).await.unwrap());
    world.clock.advance(Duration::from_hours(24) + Duration::from_micros(1));
    made(world.admin.create_principal(&world.owner, new("c"), Some(principal("k", 3))).await.unwrap());
}

#[tokio::test]
async fn a_refused_request_takes_no_key() {
    let world = World::new().await;
    let ann = world.member("ann").await;
    let new = || new_principal("eve", PrincipalKind::App, Role::Member);
    world.admin.create_principal(&ann, new(), Some(principal("k", 1))).await.unwrap_err();
    made(world.admin.create_principal(&world.owner, new(), Some(principal("other", 1))).await.unwrap());
    let taken = world.admin.create_principal(&world.owner, new(), Some(principal("k", 1))).await.unwrap_err();
    assert_eq!(taken, AdminError::AlreadyExists);
    assert_eq!(world.store.state.lock().unwrap().answers.len(), 1);
}

#[test]
fn keys_are_printable_ascii() {
    for good in ["a", "8e03978e-40d5-43e8-bc93-6894a57f9324", "with space ~", &"x".repeat(255)] {
        assert!(IdempotencyKey::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "ä", "a\nb", "a\u{7f}", &"x".repeat(256)] {
        assert!(IdempotencyKey::parse(bad).is_err(), "{bad}");
    }
}
