//! Keys: overlap, expiry, and another master key.

use std::sync::Arc;
use std::time::Duration;

use hooks::{HookError, HookKind, KeyMaterial, MasterKey, MasterVault, Secret, VaultError};

use crate::memory::SECOND;
use crate::receivers::until;
use crate::world::World;

const HOUR: Duration = Duration::from_hours(1);

/// A world in which hours pass quickly.
fn patient() -> World {
    World::with(|settings| settings.poll_interval = Duration::from_mins(10))
}

/// The signatures of a ring that is sent now, by these secrets.
async fn signed_by(world: &World, secrets: &[&Secret]) -> (usize, Vec<bool>) {
    let before = world.receivers.got().len();
    world.memory.publish("alpha", "inbox").await;
    until(3 * SECOND, "it rang", || world.receivers.got().len() > before).await;
    let got = world.receivers.got().pop().unwrap();
    (got.signatures(), secrets.iter().map(|secret| got.is_signed_by(secret.bytes())).collect())
}

#[tokio::test(start_paused = true)]
async fn both_keys_sign_during_the_overlap_and_an_expired_one_never_again() {
    let world = patient();
    let made = world.hook("alpha", "a.example").await;
    world.start();
    let alpha = world.caller("alpha").await;
    let rotated = world.hooks.rotate(&alpha, made.hook.id).await.unwrap();
    let new = rotated.secret.unwrap();
    assert_ne!(new, made.secret);
    assert_eq!(signed_by(&world, &[&made.secret, &new]).await, (2, vec![true, true]));
    world.pass(23 * HOUR).await;
    assert_eq!(signed_by(&world, &[&made.secret, &new]).await, (2, vec![true, true]));
    world.pass(HOUR + SECOND).await;
    assert_eq!(signed_by(&world, &[&made.secret, &new]).await, (1, vec![false, true]));
    until(Duration::from_mins(20), "it is purged", || world.memory.state().keys.len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_never_signs_even_before_it_is_purged() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    let alpha = world.caller("alpha").await;
    world.hooks.rotate(&alpha, made.hook.id).await.unwrap();
    *world.memory.failing.lock().unwrap() = Some("purge_hook_keys");
    world.pass(24 * HOUR).await;
    world.start();
    assert_eq!(signed_by(&world, &[&made.secret]).await, (1, vec![false]));
    assert_eq!(world.memory.state().keys.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn rotating_twice_keeps_every_key_its_own_overlap() {
    let world = patient();
    let made = world.hook("alpha", "a.example").await;
    world.start();
    let alpha = world.caller("alpha").await;
    let second = world.hooks.rotate(&alpha, made.hook.id).await.unwrap().secret.unwrap();
    world.pass(12 * HOUR).await;
    let third = world.hooks.rotate(&alpha, made.hook.id).await.unwrap().secret.unwrap();
    assert_eq!(signed_by(&world, &[&made.secret, &second, &third]).await, (3, vec![true; 3]));
    world.pass(12 * HOUR).await;
    assert_eq!(
        signed_by(&world, &[&made.secret, &second, &third]).await,
        (2, vec![false, true, true]),
        "the second rotation prolongs nothing"
    );
    world.pass(12 * HOUR).await;
    assert_eq!(signed_by(&world, &[&made.secret, &second, &third]).await, (1, vec![false, false, true]));
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_hook_are_bounded_and_the_oldest_goes() {
    let world = World::with(|settings| settings.keys_max = 3);
    let made = world.hook("alpha", "a.example").await;
    world.start();
    let alpha = world.caller("alpha").await;
    let mut secrets = vec![made.secret];
    for _ in 0..5 {
        world.pass(SECOND).await;
        secrets.push(world.hooks.rotate(&alpha, made.hook.id).await.unwrap().secret.unwrap());
    }
    let secrets: Vec<&Secret> = secrets.iter().collect();
    assert_eq!(signed_by(&world, &secrets).await, (3, vec![false, false, false, true, true, true]));
}

#[tokio::test(start_paused = true)]
async fn another_master_key_wraps_every_secret_anew_and_the_old_one_can_go() {
    let world = World::new();
    let made = world.hook("alpha", "a.example").await;
    world.hook("beta", "b.example").await;
    world.hooks.keys().await.unwrap();
    let (old, new) = (MasterKey::new(&[3; 32]).unwrap(), MasterKey::new(&[4; 32]).unwrap());
    let world = world.restart_with(Arc::new(MasterVault::new(new.clone(), vec![old])));
    assert_eq!(world.hooks.reseal().await.unwrap(), 4, "two secrets and two pairs");
    assert_eq!(world.hooks.reseal().await.unwrap(), 0);
    let world = world.restart_with(Arc::new(MasterVault::new(new, Vec::new())));
    world.start();
    assert_eq!(signed_by(&world, &[&made.secret]).await, (1, vec![true]));
    world.hooks.keys().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_moved_to_another_row_cannot_be_opened() {
    let world = World::new();
    let (alpha, beta) = (world.hook("alpha", "a.example").await, world.hook("beta", "b.example").await);
    world.memory.edit(|state| {
        let material = |hook| state.keys.values().find(|key| state.keys.contains_key(&(hook, key.id.clone()))).unwrap().material.clone();
        let stolen = material(alpha.hook.id);
        assert!(matches!(stolen, KeyMaterial::Secret(_)));
        state.keys.iter_mut().filter(|((hook, _), _)| *hook == beta.hook.id).for_each(|(_, key)| key.material = stolen.clone());
    });
    let caller = world.caller("beta").await;
    let answer = world.hooks.test(&caller, HookKind::Notify, beta.hook.id).await;
    assert_eq!(answer.unwrap_err(), HookError::Secrets(VaultError::Damaged));
    assert!(world.receivers.got().is_empty());
}
