//! Opening: alone, known, whole, or not at all.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use doorstep_store_sqlite::{DATABASE_FILE, OpenError, SqliteStore, StoreOptions};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::{Fixture, clock, new_seq};

fn open(path: &Path) -> Result<Arc<SqliteStore>, OpenError> {
    SqliteStore::open(path, StoreOptions::default(), clock())
}

/// A closed store of `events` events; its directory and the database in it.
async fn closed(events: usize) -> (Arc<TempDir>, std::path::PathBuf) {
    let fixture = Fixture::new().await;
    fixture.fill(events).await;
    fixture.store.close().await;
    let database = fixture.store.path().to_path_buf();
    (fixture.dir, database)
}

fn refusal(path: &Path) -> OpenError {
    open(path).expect_err("it must not open")
}

#[tokio::test]
async fn two_openers_refuse_each_other_with_a_clear_message() {
    let fixture = Fixture::new().await;
    let refused = refusal(fixture.dir.path());
    assert!(matches!(&refused, OpenError::InUse { holder: Some(pid), .. } if *pid == std::process::id()), "{refused:?}");
    let message = refused.to_string();
    assert!(message.contains(fixture.dir.path().to_str().unwrap()) && message.contains("another doorstep process"), "{message}");
    fixture.fill(1).await;
    fixture.store.close().await;
    open(fixture.dir.path()).unwrap().close().await;
}

#[tokio::test]
async fn a_directory_is_free_again_when_the_store_is_dropped() {
    let fixture = Fixture::new().await;
    let dir = Arc::clone(&fixture.dir);
    drop(fixture);
    open(dir.path()).unwrap().close().await;
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let (dir, database) = closed(1).await;
    Connection::open(&database).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let refused = refusal(dir.path());
    assert!(matches!(refused, OpenError::NewerSchema { found: 99, known: 6, .. }), "{refused:?}");
    let message = refused.to_string();
    assert!(message.contains("99") && message.contains("up to 6") && message.contains("use the release"), "{message}");
}

#[tokio::test]
async fn a_store_that_was_migrated_differently_is_refused() {
    let (dir, database) = closed(1).await;
    Connection::open(&database).unwrap().execute("UPDATE schema_migrations SET checksum = checksum + 1", []).unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::ForeignMigration { version: 1, .. }));
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(DATABASE_FILE);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x); PRAGMA application_id = 7;").unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::NotAStore { .. }));
    std::fs::write(&path, "this is no database, and longer than a header of a hundred bytes would be ".repeat(9)).unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::NotAStore { .. }));
    std::fs::write(&path, &before).unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::NotAStore { .. }));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, "x").unwrap();
    let refused = refusal(&path);
    assert!(matches!(&refused, OpenError::Directory { .. }), "{refused:?}");
    assert!(refused.to_string().contains(path.to_str().unwrap()), "{refused}");
    let below = refusal(&path.join("below"));
    assert!(matches!(below, OpenError::Directory { .. }), "{below:?}");
}

#[test]
fn a_directory_is_made_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/data");
    drop(open(&path).unwrap());
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o700);
    }
    assert!(path.join(DATABASE_FILE).exists());
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_stored_is_for_its_owner_only_also_in_a_directory_for_all() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let store = open(&path).unwrap();
    store.backup(&place.path().join("backup")).await.unwrap();
    let mode = |file: &Path| std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file).unwrap().permissions()) & 0o777;
    for name in [DATABASE_FILE.to_owned(), format!("{DATABASE_FILE}-wal"), format!("{DATABASE_FILE}-shm")] {
        assert_eq!(mode(&path.join(&name)), 0o600, "{name}");
    }
    assert_eq!(mode(&place.path().join("backup")), 0o600);
    store.close().await;
}

#[tokio::test]
async fn an_emptied_or_vanished_database_is_not_taken_for_a_new_one() {
    let (dir, database) = closed(3).await;
    std::fs::write(&database, "").unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::Corrupt { .. }));
    std::fs::remove_file(&database).unwrap();
    std::fs::write(database.with_file_name(format!("{DATABASE_FILE}-wal")), "left behind").unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::Corrupt { .. }));
}

#[tokio::test]
async fn a_cut_database_is_refused() {
    let (dir, database) = closed(200).await;
    let file = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
    let size = file.metadata().unwrap().len();
    file.set_len(size - 8192).unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::Corrupt { .. }));
}

/// Opens after `damage` was done to a store of ten events.
async fn after(damage: &str) -> Result<Arc<SqliteStore>, OpenError> {
    let (dir, database) = closed(10).await;
    let connection = Connection::open(&database).unwrap();
    assert!(connection.execute(damage, []).unwrap() > 0, "{damage}");
    drop(connection);
    open(dir.path())
}

#[tokio::test]
async fn a_log_that_contradicts_its_head_row_is_never_served_shorter() {
    for damage in [
        "DELETE FROM event_log WHERE position & 0xff = 10",
        "DELETE FROM event_log WHERE position & 0xff > 5",
        "DELETE FROM event_log",
        "DELETE FROM event_log WHERE position & 0xff = 1",
        "UPDATE event_log SET body = '\"forged\"' WHERE position & 0xff = 10",
        "UPDATE event_log SET checksum = 0 WHERE position & 0xff = 1",
        "UPDATE log_heads SET head = 9",
        "UPDATE log_heads SET head = 11",
        "UPDATE log_heads SET floor = 12",
        "UPDATE log_heads SET floor = 0",
        "UPDATE log_heads SET floor = -1",
        "UPDATE log_heads SET head = 9, floor = 10",
    ] {
        let outcome = after(damage).await;
        assert!(matches!(outcome, Err(OpenError::Corrupt { .. })), "{damage}: {outcome:?}");
    }
    // The check can also pass.
    let fine = after("UPDATE log_heads SET floor = 3").await.unwrap();
    fine.close().await;
}

/// A copy of the files of a store that is open: what a crash leaves behind.
fn crash_image(fixture: &Fixture) -> TempDir {
    let image = tempfile::tempdir().unwrap();
    for suffix in ["", "-wal"] {
        let name = format!("{DATABASE_FILE}{suffix}");
        std::fs::copy(fixture.dir.path().join(&name), image.path().join(&name)).unwrap();
    }
    image
}

fn wal(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join(format!("{DATABASE_FILE}-wal"))
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_a_crash() {
    let fixture = Fixture::new().await;
    for turn in 1..=30 {
        let answer = fixture.append(vec![fixture.keyed(&format!("k{turn}"), "a")]).await.unwrap();
        assert_eq!(new_seq(&answer[0]), turn);
        if turn % 10 == 0 {
            let image = crash_image(&fixture);
            let store = open(image.path()).unwrap();
            let page = sync::LogStore::page(&*store, &fixture.tenant, crate::support::range(0)).await.unwrap();
            assert_eq!((page.head.seq.get(), page.events.len() as u64), (turn, turn));
            store.close().await;
        }
    }
}

#[tokio::test]
async fn a_torn_last_transaction_is_dropped_and_nothing_else() {
    let fixture = Fixture::new().await;
    fixture.fill(20).await;
    let before = std::fs::metadata(fixture.dir.path().join(format!("{DATABASE_FILE}-wal"))).unwrap().len();
    fixture.fill(1).await;
    let whole = std::fs::metadata(fixture.dir.path().join(format!("{DATABASE_FILE}-wal"))).unwrap().len();
    assert!(before < whole);
    for cut in [before, before + 10, u64::midpoint(before, whole), whole - 1] {
        let image = crash_image(&fixture);
        std::fs::OpenOptions::new().write(true).open(wal(&image)).unwrap().set_len(cut).unwrap();
        let store = open(image.path()).unwrap();
        let head = sync::LogStore::head(&*store, &fixture.tenant).await.unwrap().unwrap();
        assert_eq!(head.seq.get(), 20, "cut at {cut}");
        store.close().await;
    }
}

#[tokio::test]
async fn a_write_ahead_log_that_is_broken_before_its_end_is_refused_not_shortened() {
    let fixture = Fixture::new().await;
    fixture.fill(20).await;
    let size = std::fs::metadata(fixture.dir.path().join(format!("{DATABASE_FILE}-wal"))).unwrap().len();
    for at in [40, size / 4, size / 2] {
        let image = crash_image(&fixture);
        let mut bytes = std::fs::read(wal(&image)).unwrap();
        bytes[usize::try_from(at).unwrap()] ^= 0x10;
        std::fs::write(wal(&image), bytes).unwrap();
        let refused = refusal(image.path());
        assert!(matches!(refused, OpenError::Corrupt { .. }), "byte {at}: {refused:?}");
    }
}

#[tokio::test]
async fn opening_is_quick_and_what_was_half_made_is_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(format!("{DATABASE_FILE}.new")), "half of a database").unwrap();
    let started = Instant::now();
    let store = open(dir.path()).unwrap();
    let took = started.elapsed();
    assert!(took.as_secs() < 10, "{took:?}");
    store.close().await;
    assert!(!dir.path().join(format!("{DATABASE_FILE}.new")).exists());
}
