//! `doorstep_publish`: who may call it, and what it lets pass.

use std::time::Duration;

use intake::{Settings, StagedState};
use sqlx_core::row::Row;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::support::{World, event, mover, publish, run, session};

#[tokio::test]
async fn nobody_may_publish_who_was_not_let_in() {
    let world = World::new().await;
    let stranger = format!("str_{}", world.database.name());
    world.run(&format!("CREATE ROLE {stranger} LOGIN")).await;
    let mut strange = session(&world.database, &stranger).await;
    let (code, said) = publish(&mut strange, "acme", &event("x")).await.unwrap_err();
    assert_eq!((code.as_str(), said.as_str()), ("42501", "permission denied for function doorstep_publish"), "no EXECUTE for PUBLIC");
    world.run(&format!("GRANT EXECUTE ON FUNCTION public.doorstep_publish(TEXT, JSONB) TO {stranger}")).await;
    assert_eq!(publish(&mut strange, "acme", &event("x")).await.unwrap_err().0, "42501", "EXECUTE alone is not enough");
    world.run(&format!("INSERT INTO public.doorstep_publishers VALUES ('{stranger}', 'other')")).await;
    let (code, refused) = publish(&mut strange, "acme", &event("x")).await.unwrap_err();
    assert_eq!(code, "42501", "a role of another tenant");
    let (code, absent) = publish(&mut strange, "no-such-tenant", &event("x")).await.unwrap_err();
    assert_eq!((code.as_str(), absent), ("42501", refused), "nobody learns which tenants there are");
    assert!(publish(&mut strange, "other", r#"{"type": "a.b", "audience": ["sam"]}"#).await.is_ok());
    // Another's role is no disguise.
    world.run(&format!("GRANT {} TO {stranger}", world.role)).await;
    run(&mut strange, &format!("SET ROLE {}", world.role)).await.unwrap();
    assert_eq!(publish(&mut strange, "acme", &event("x")).await.unwrap_err().0, "42501");
    for statement in ["SELECT * FROM doorstep.log_staged", "SELECT * FROM public.doorstep_publishers", "SELECT doorstep.publish_id(0)"] {
        assert!(run(&mut strange, statement).await.is_err(), "{statement}");
    }
    assert_eq!(world.staged().await, []);
    let mut superuser = world.database.connection().await;
    assert!(publish(&mut superuser, "acme", &event("x")).await.is_ok(), "superusers pass");
    assert_eq!(world.staged().await[0].publisher.as_str(), "postgres");
}

#[tokio::test]
async fn a_role_whose_name_no_actor_can_have_is_refused() {
    let world = World::new().await;
    let name = format!("Upper {}", world.database.name());
    world.run(&format!("CREATE ROLE \"{name}\" LOGIN SUPERUSER")).await;
    let mut session = session(&world.database, &name).await;
    assert_eq!(publish(&mut session, "acme", &event("x")).await.unwrap_err().0, "42501");
    run(&mut session, &format!("INSERT INTO public.doorstep_publishers VALUES ('{name}', 'acme')")).await.unwrap_err();
    run(&mut session, "INSERT INTO public.doorstep_publishers VALUES ('server', 'acme')").await.unwrap_err();
    drop(session);
    world.run(&format!("DROP ROLE \"{name}\"")).await;
}

/// Everything that a caller can put in the way: schemas before ours, temporary tables, functions and operators of the same names, settings.
#[tokio::test]
async fn nothing_that_the_caller_sets_changes_what_the_function_does() {
    let world = World::new().await;
    let role = &world.role;
    world.run(&format!("CREATE SCHEMA evil AUTHORIZATION {role}")).await;
    let mut app = world.app().await;
    let traps = [
        "CREATE TABLE evil.trap (what TEXT)",
        "CREATE FUNCTION evil.jsonb_typeof(JSONB) RETURNS TEXT LANGUAGE sql AS $$ INSERT INTO evil.trap VALUES ('typeof') RETURNING 'object' $$",
        "CREATE FUNCTION evil.clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$",
        "CREATE FUNCTION evil.publish_fault(JSONB, BIGINT) RETURNS TEXT LANGUAGE sql AS $$ SELECT NULL::TEXT $$",
        "CREATE FUNCTION evil.gen_random_uuid() RETURNS UUID LANGUAGE sql AS $$ SELECT '00000000-0000-0000-0000-000000000000'::uuid $$",
        "CREATE FUNCTION evil.always(TEXT, TEXT) RETURNS BOOLEAN LANGUAGE sql AS $$ INSERT INTO evil.trap VALUES ('eq') RETURNING true $$",
        "CREATE OPERATOR evil.= (LEFTARG = TEXT, RIGHTARG = TEXT, FUNCTION = evil.always)",
        "CREATE OPERATOR evil.~ (LEFTARG = TEXT, RIGHTARG = TEXT, FUNCTION = evil.always)",
        "CREATE TABLE evil.log_staged (tenant_id TEXT, event_id UUID, publisher TEXT, event TEXT, staged_at BIGINT, state TEXT)",
        "CREATE TABLE evil.doorstep_publishers (role TEXT, tenant TEXT)",
        "CREATE TEMPORARY TABLE log_staged (tenant_id TEXT, event_id UUID, publisher TEXT, event TEXT, staged_at BIGINT, state TEXT)",
        "CREATE TEMPORARY TABLE doorstep_publishers (role TEXT, tenant TEXT)",
        "CREATE TEMPORARY TABLE pg_roles (rolname TEXT, rolsuper BOOLEAN)",
        "CREATE TEMPORARY TABLE channels (tenant_id TEXT, space_id TEXT, channel_id TEXT)",
    ];
    for trap in traps {
        run(&mut app, trap).await.unwrap();
    }
    for table in ["evil.doorstep_publishers", "pg_temp.doorstep_publishers"] {
        run(&mut app, &format!("INSERT INTO {table} VALUES ('{role}', 'other')")).await.unwrap();
    }
    run(&mut app, &format!("INSERT INTO pg_temp.pg_roles VALUES ('{role}', true)")).await.unwrap();
    run(&mut app, "INSERT INTO pg_temp.channels VALUES ('acme', 'made', 'up')").await.unwrap();
    for path in ["evil, pg_temp, pg_catalog, public", "pg_temp, evil, pg_catalog", "evil"] {
        run(&mut app, &format!("SET search_path = {path}")).await.unwrap();
        for settings in [
            "SET standard_conforming_strings = off",
            "SET DateStyle = 'German, DMY'",
            "SET TimeZone = 'Asia/Kolkata'",
            "SET bytea_output = escape",
        ] {
            run(&mut app, settings).await.unwrap();
        }
        assert_eq!(publish(&mut app, "other", r#"{"type": "a.b", "audience": ["sam"]}"#).await.unwrap_err().0, "42501");
        assert_eq!(publish(&mut app, "acme", r#"{"type": "A B", "channel": "s/c"}"#).await.unwrap_err().0, "22023");
        assert_eq!(publish(&mut app, "acme", r#"{"type": "a.b", "channel": "made/up"}"#).await.unwrap_err().0, "22023");
        assert_eq!(publish(&mut app, "acme", r#"{"type": "a.b", "channel": "s/c", "kind": "a\u0001"}"#).await.unwrap_err().0, "22023");
        assert!(publish(&mut app, "acme", &event("x")).await.is_ok());
    }
    assert_eq!(world.staged().await.len(), 3);
    let trapped = sqlx_core::query::query("SELECT count(*) FROM evil.trap").fetch_one(&mut world.database.connection().await).await;
    assert_eq!(trapped.unwrap().get::<i64, _>(0), 0, "nothing of the caller's ran with the function's rights");
}

/// Events, and whether the doors let them pass.
fn bodies() -> Vec<(String, bool)> {
    let nested = |open: &str, close: &str, levels: usize| {
        format!(r#"{{"type": "a.b", "channel": "s/c", "payload": {{"a": {}1{}}}}}"#, open.repeat(levels), close.repeat(levels))
    };
    let with = |member: &str| format!(r#"{{"type": "a.b", "channel": "s/c", {member}}}"#);
    let text = |count: usize| "ä".repeat(count);
    let agents = |count: usize| (0..count).map(|n| format!(r#""p{n}""#)).collect::<Vec<_>>().join(",");
    let pairs = |count: usize| (0..count).map(|n| format!(r#""n{n}": """#)).collect::<Vec<_>>().join(",");
    let good = [
        r#"{"type": "a", "channel": "s/c"}"#.to_owned(),
        r#"{"type": "a-b_1.c.0", "audience": ["sam", "sam", "0"]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"kind": "agent", "id": "alpha", "queue": "q-1_x"}, {"id": "beta", "kind": "agent"}]}"#
            .to_owned(),
        format!(r#"{{"type": "{}", "channel": "s/c"}}"#, "x".repeat(128)),
        format!(r#"{{"type": "a.b", "audience": [{}]}}"#, agents(100)),
        with(r#""priority": "urgent", "max_attempts": 4294967295"#),
        with(r#""available_at": "2020-02-29T23:59:59Z""#),
        with(r#""available_at": "2020-02-29t23:59:59.123456789z", "expires_at": "9999-12-30T00:00:00Z""#),
        with(r#""expires_at": "2999-01-01 00:00:00+05:30""#),
        with(&format!(r#""kind": "{0}", "source": "{0}", "payload_ref": {{"kind": "{0}", "id": "{0}"}}"#, text(256))),
        with(&format!(r#""summary": "{}", "deduplication_key": "{}""#, text(200), text(256))),
        with(r#""summary": "\n a\tb \u202e""#),
        with(&format!(r#""correlation": {{"{0}": "{0}", "b": ""}}"#, text(256))),
        with(&format!(r#""correlation": {{{}}}"#, pairs(32))),
        with(r#""payload": {"null": null, "n": [1e308, -1.7976931348623157e308, 0.1e-400], "s": "\ud83d\ude00 \\u0000"}"#),
        with(&format!(r#""payload": {{"a": "{}"}}"#, "x".repeat(1_048_576 - 9))),
        nested("[", "]", 63),
        nested(r#"{"a": "#, "}", 63),
    ];
    let bad = [
        "[]".to_owned(),
        r#""text""#.to_owned(),
        "1".to_owned(),
        "{}".to_owned(),
        r#"{"type": "a.b"}"#.to_owned(),
        r#"{"type": "a.b", "audience": [], "recipients": []}"#.to_owned(),
        r#"{"type": null, "channel": "s/c"}"#.to_owned(),
        r#"{"type": 1, "channel": "s/c"}"#.to_owned(),
        r#"{"type": "", "channel": "s/c"}"#.to_owned(),
        r#"{"type": "a..b", "channel": "s/c"}"#.to_owned(),
        r#"{"type": ".a", "channel": "s/c"}"#.to_owned(),
        r#"{"type": "a.", "channel": "s/c"}"#.to_owned(),
        r#"{"type": "A", "channel": "s/c"}"#.to_owned(),
        r#"{"type": "a\n", "channel": "s/c"}"#.to_owned(),
        r#"{"type": "ä", "channel": "s/c"}"#.to_owned(),
        format!(r#"{{"type": "{}", "channel": "s/c"}}"#, "x".repeat(129)),
        r#"{"type": "inbox.requeued", "channel": "s/c"}"#.to_owned(),
        r#"{"type": "a.b", "channel": "s"}"#.to_owned(),
        r#"{"type": "a.b", "channel": "s/c/d"}"#.to_owned(),
        r#"{"type": "a.b", "channel": "S/c"}"#.to_owned(),
        r#"{"type": "a.b", "channel": ["s/c"]}"#.to_owned(),
        r#"{"type": "a.b", "channel": "s/c", "more": 1}"#.to_owned(),
        r#"{"type": "a.b", "channel": "s/c", "id": "x"}"#.to_owned(),
        r#"{"type": "a.b", "audience": "sam"}"#.to_owned(),
        r#"{"type": "a.b", "audience": ["Sam"]}"#.to_owned(),
        r#"{"type": "a.b", "audience": [null]}"#.to_owned(),
        r#"{"type": "a.b", "audience": ["_a"]}"#.to_owned(),
        format!(r#"{{"type": "a.b", "audience": [{}]}}"#, agents(101)),
        format!(r#"{{"type": "a.b", "audience": [{}], "recipients": [{{"kind": "agent", "id": "alpha"}}]}}"#, agents(100)),
        r#"{"type": "a.b", "recipients": {"kind": "agent", "id": "alpha"}}"#.to_owned(),
        r#"{"type": "a.b", "recipients": ["alpha"]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"kind": "app", "id": "alpha"}]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"kind": "agent"}]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"id": "alpha"}]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"kind": "agent", "id": "alpha", "queue": "Q"}]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"kind": "agent", "id": "alpha", "queue": "a.b"}]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"kind": "agent", "id": "alpha", "more": 1}]}"#.to_owned(),
        r#"{"type": "a.b", "recipients": [{"kind": "agent", "id": "alpha"}, {"kind": "agent", "id": "alpha"}]}"#.to_owned(),
        with(r#""priority": "asap""#),
        with(r#""priority": 1"#),
        with(r#""available_at": 1"#),
        with(r#""available_at": "tomorrow""#),
        with(r#""available_at": "2020-02-30T00:00:00Z""#),
        with(r#""available_at": "2020-02-28T24:00:00Z""#),
        with(r#""available_at": "2020-02-28T00:00:00""#),
        with(r#""available_at": "2999-01-01T00:00:00Z""#),
        with(r#""expires_at": "2020-01-01T00:00:00Z""#),
        with(r#""expires_at": null"#),
        with(r#""max_attempts": 0"#),
        with(r#""max_attempts": -1"#),
        with(r#""max_attempts": 1.5"#),
        with(r#""max_attempts": "1""#),
        with(r#""max_attempts": 4294967296"#),
        with(r#""kind": """#),
        with(r#""kind": "a\u0007""#),
        with(r#""kind": "a\u009f""#),
        with(r#""kind": 1"#),
        with(&format!(r#""kind": "{}""#, text(257))),
        with(r#""source": """#),
        with(&format!(r#""source": "{}""#, text(257))),
        with(r#""payload_ref": {"kind": "a"}"#),
        with(r#""payload_ref": {"kind": "a", "id": ""}"#),
        with(r#""payload_ref": {"kind": "a", "id": "b", "more": 1}"#),
        with(r#""summary": "\u2003\u0001 \u202e\u061c\u3000""#),
        with(r#""summary": """#),
        with(&format!(r#""summary": "{}""#, text(201))),
        with(r#""deduplication_key": """#),
        with(r#""deduplication_key": "a\u0000""#),
        with(r#""deduplication_key": "a\u0085""#),
        with(&format!(r#""deduplication_key": "{}""#, text(257))),
        with(r#""correlation": {"": "a"}"#),
        with(r#""correlation": {"a": 1}"#),
        with(r#""correlation": {"a": "\u001f"}"#),
        with(&format!(r#""correlation": {{"a": "{}"}}"#, text(257))),
        with(&format!(r#""correlation": {{{}}}"#, pairs(33))),
        with(r#""correlation": []"#),
        with(r#""payload": []"#),
        with(r#""payload": "a""#),
        with(r#""payload": {"a": 1e309}"#),
        with(r#""payload": {"a": [{"b": -1e309}]}"#),
        with(r#""payload": {"a": "\ud800"}"#),
        with(r#""payload": {"a\u0000": 1}"#),
        with(&format!(r#""payload": {{"a": "{}"}}"#, "x".repeat(1_048_576 - 8))),
        nested("[", "]", 64),
        nested(r#"{"a": "#, "}", 64),
    ];
    good.into_iter().map(|body| (body, true)).chain(bad.into_iter().map(|body| (body, false))).collect()
}

#[tokio::test]
async fn every_member_is_held_against_the_rules_of_the_other_doors() {
    let world = World::new().await;
    let mut app = world.app().await;
    let mut passed = 0;
    for (body, is_good) in bodies() {
        let shown: String = body.chars().take(200).collect();
        match publish(&mut app, "acme", &body).await {
            Ok(_) => {
                assert!(is_good, "passed: {shown}");
                passed += 1;
            }
            Err((code, said)) => {
                assert!(!is_good, "refused: {shown}: {said}");
                // A text that `jsonb` itself cannot hold has its own states.
                assert!(["22023", "22P05", "22P02"].contains(&code.as_str()), "{shown}: {code} {said}");
            }
        }
    }
    // The rules of the server see it the same way: what passed the door enters the log, what did not would have failed.
    world.move_all().await;
    assert_eq!(world.staged().await, []);
    assert_eq!(world.log().await.len(), passed);
    assert_eq!(publish(&mut app, "acme", r#"{"type": "a.b", "channel": "s/c", "payload_ref": ["a", "b"]}"#).await.unwrap_err().0, "22023");
    let refused: Vec<String> = bodies().into_iter().filter(|(_, is_good)| !is_good).map(|(body, _)| body).collect();
    for body in &refused {
        let insert = "INSERT INTO doorstep.log_staged (tenant_id, event_id, publisher, event, staged_at, state)
            VALUES ('acme', gen_random_uuid(), 'app', $1, (extract(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT, 'waiting')";
        sqlx_core::query::query(insert).bind(body).execute(&mut world.database.connection().await).await.unwrap();
    }
    world.move_all().await;
    let failed = world.staged().await;
    let unseen: Vec<&String> = refused.iter().filter(|body| !failed.iter().any(|staged| staged.event == **body)).collect();
    assert_eq!(unseen, Vec::<&String>::new(), "the rules of the server let it pass");
    assert!(failed.iter().all(|staged| staged.state == StagedState::Failed));
}

#[tokio::test]
async fn null_and_unknown_recipients_are_refused_with_a_pointer() {
    let world = World::new().await;
    let mut app = world.app().await;
    for call in ["SELECT public.doorstep_publish(NULL, '{}')", "SELECT public.doorstep_publish('acme', NULL)"] {
        let sqlx_core::Error::Database(error) = run(&mut app, call).await.unwrap_err() else { panic!("no answer") };
        assert_eq!(error.code().unwrap(), "22004", "{call}");
    }
    let to = |agent: &str| {
        format!(r#"{{"type": "a.b", "recipients": [{{"kind": "agent", "id": "alpha"}}, {{"kind": "agent", "id": "{agent}"}}]}}"#)
    };
    world.run("INSERT INTO principals VALUES ('acme', 'sam', 'person', 'member', NULL, true, 0)").await;
    for nobody in ["nobody", "sam"] {
        let (code, said) = publish(&mut app, "acme", &to(nobody)).await.unwrap_err();
        assert_eq!(code, "22023");
        assert_eq!(said, "doorstep_publish: /recipients/1: there is no such agent, or it is disabled");
    }
}

#[tokio::test]
async fn the_limits_are_those_of_the_servers_configuration() {
    let world = World::new().await;
    let mut app = world.app().await;
    let settings = Settings { max_payload_bytes: 20, max_depth: 2, ..Settings::default() };
    let (moving, token, tasks) = (mover(&world.store, &world.clock, settings), CancellationToken::new(), TaskTracker::new());
    let stop = token.clone();
    tasks.spawn(async move { moving.run(stop).await });
    let long = event("a payload of more than twenty bytes");
    let deadline = Instant::now() + Duration::from_secs(5);
    while publish(&mut app, "acme", &long).await.is_ok() {
        assert!(Instant::now() < deadline, "the limits of the configuration do not arrive");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(publish(&mut app, "acme", r#"{"type": "a.b", "channel": "s/c", "payload": {"a": [1]}}"#).await.is_ok());
    assert!(publish(&mut app, "acme", r#"{"type": "a.b", "channel": "s/c", "payload": {"a": [[]]}}"#).await.is_err());
    token.cancel();
    tasks.close();
    tasks.wait().await;
}
