//! What clients rely on: codes, statuses, close codes and their verdicts. A change here breaks programs.

use protocol::admin::{AuditDecision, Permission, PrincipalKind, Role, ScheduledState, Scope, StagedState, TenantState};
use protocol::{
    AckResult, AckState, AttemptOutcome, AttemptResult, AuthMode, ClaimConcurrency, ClientOp, CloseCode, DeadLetterState, DeliveryScope,
    DisabledCause, HolderKind, HookState, ItemOutcome, Open, PresenceState, Priority, Problem, ProblemCode, Reason, RecipientKind,
    Reconnect, ResyncReason, RingReason, ServerOp, Transport, Vocabulary,
};

#[test]
fn every_problem_code_keeps_its_status() {
    let agreed = [
        ("validation_failed", 400),
        ("recipient_unknown", 400),
        ("url_refused", 400),
        ("unauthenticated", 401),
        ("forbidden", 403),
        ("not_found", 404),
        ("method_not_allowed", 405),
        ("not_acceptable", 406),
        ("request_timeout", 408),
        ("deduplication_conflict", 409),
        ("idempotency_conflict", 409),
        ("already_exists", 409),
        ("limit_reached", 409),
        ("state_conflict", 409),
        ("lease_lost", 409),
        ("cursor_reset_required", 410),
        ("resync_required", 410),
        ("payload_too_large", 413),
        ("unsupported_media_type", 415),
        ("upgrade_required", 426),
        ("rate_limited", 429),
        ("internal", 500),
        ("overloaded", 503),
        ("storage_full", 503),
        ("in_doubt", 503),
        ("secrets_unavailable", 503),
        ("unavailable", 503),
    ];
    let present: Vec<_> = ProblemCode::ALL.iter().map(|code| (code.as_str(), code.status())).collect();
    assert_eq!(present, agreed);
}

#[test]
fn every_problem_is_titled_and_documented_and_typed_by_its_code() {
    let mut titles = std::collections::BTreeSet::new();
    for &code in ProblemCode::ALL {
        assert!(titles.insert(code.title()), "{code}: its title is another's");
        assert!(code.describe().ends_with('.'), "{code}");
        let problem = Problem::new(code, "detail", "request");
        assert_eq!(problem.problem_type, format!("urn:doorstep:problem:{code}"));
        assert_eq!((problem.status, problem.title.as_str(), problem.code), (code.status(), code.title(), Open::Known(code)));
    }
}

#[test]
fn close_codes_follow_the_table() {
    use Reconnect::{Backoff, Delay, Identify, Jittered, Never};
    let agreed = [
        (4000, "internal", Backoff),
        (4001, "unknown_op", Never),
        (4002, "invalid_frame", Never),
        (4003, "not_identified", Backoff),
        (4004, "heartbeat_timeout", Backoff),
        (4005, "already_identified", Never),
        (4006, "unknown_session", Identify),
        (4008, "rate_limited", Delay),
        (4009, "session_expired", Identify),
        (4010, "unsupported_protocol", Never),
        (4011, "frame_too_large", Never),
        (4012, "unauthenticated", Never),
        (4013, "shutting_down", Jittered),
        (4014, "slow_consumer", Backoff),
        (4015, "consumer_replaced", Never),
        (4016, "tenant_suspended", Never),
        (4017, "session_replaced", Never),
        (4018, "forbidden", Never),
    ];
    let present: Vec<_> = CloseCode::ALL.iter().map(|code| (code.number(), code.name(), code.client_may_reconnect())).collect();
    assert_eq!(present, agreed);
    for &code in CloseCode::ALL {
        assert_eq!(CloseCode::from_number(code.number()), Some(code));
        assert_eq!(Reconnect::after_close(Some(code.number())), code.client_may_reconnect());
    }
}

#[test]
fn closes_that_are_not_ours_are_tried_again_with_pauses() {
    for number in [None, Some(1000), Some(1001), Some(1006), Some(1011), Some(4007), Some(4999)] {
        assert_eq!(number.and_then(CloseCode::from_number), None);
        assert_eq!(Reconnect::after_close(number), Reconnect::Backoff, "{number:?}");
    }
}

#[test]
fn words_of_the_wire_stay_as_agreed() {
    fn words<T: Vocabulary>() -> String {
        T::all().iter().map(|member| member.as_str()).collect::<Vec<_>>().join(" ")
    }
    assert_eq!(words::<ClientOp>(), "identify resume ack heartbeat");
    assert_eq!(
        words::<ServerOp>(),
        "hello ready resumed dispatch cursor catchup.complete resync_required inbox.updated heartbeat_ack error"
    );
    assert_eq!(words::<ResyncReason>(), "retention cursor_ahead epoch_changed too_far_behind");
    assert_eq!(
        words::<Reason>(),
        "subject_kind_not_allowed scope_missing permission_missing role_missing instance_operator_only tenant_suspended tenant_deleting \
         principal_disabled token_expired token_revoked credential_in_url last_owner not_empty already_promoted session_not_active \
         receiver_unverified malformed scheme userinfo port not_listed unresolvable network takeover_storm retention \
         cursor_ahead epoch_changed too_far_behind"
    );
    assert_eq!(words::<Priority>(), "low normal high urgent");
    assert_eq!(words::<RecipientKind>(), "agent");
    assert_eq!(words::<HolderKind>(), "gateway rest");
    assert_eq!(words::<PrincipalKind>(), "person app agent");
    assert_eq!(words::<Role>(), "owner operator member");
    assert_eq!(
        words::<Scope>(),
        "publish read consume admin instance inbox.poll inbox.claim inbox.ack inbox.release inbox.heartbeat stream.subscribe \
         hooks.manage callback.register callback.rotate"
    );
    assert_eq!(words::<AckState>(), "available claimed retry_scheduled acked expired dead_letter quarantined discarded");
    assert_eq!(words::<DeadLetterState>(), "none dead_lettered quarantined redriven");
    assert_eq!(words::<AttemptOutcome>(), "completed discarded failed released snoozed interrupted lease_expired revoked");
    assert_eq!(words::<AckResult>(), "completed failed discarded");
    assert_eq!(words::<ItemOutcome>(), "ok already_claimed not_available expired not_found lease_lost limit_reached");
    assert_eq!(words::<HookState>(), "pending_verification active disabled");
    assert_eq!(words::<DisabledCause>(), "asked exhausted gone");
    assert_eq!(words::<AuthMode>(), "hmac-sha256 http-message-signatures");
    assert_eq!(words::<DeliveryScope>(), "signal_only");
    assert_eq!(words::<RingReason>(), "created requeued backlog signal challenge test");
    assert_eq!(
        words::<AttemptResult>(),
        "delivered timeout dns connect tls protocol refused redirect request_timeout gone rate_limited client_error server_error unproven"
    );
    assert_eq!(words::<Transport>(), "sse websocket long-poll poll");
    assert_eq!(words::<PresenceState>(), "in out");
    assert_eq!(words::<ClaimConcurrency>(), "many_sessions single_active_session");
    assert_eq!(words::<Permission>(), "read post manage");
    assert_eq!(words::<TenantState>(), "active suspended deleting");
    assert_eq!(words::<AuditDecision>(), "allow deny");
    assert_eq!(words::<ScheduledState>(), "waiting failed");
    assert_eq!(words::<StagedState>(), "waiting failed");
    assert_eq!(words::<domain::ActorKind>(), "person app agent server");
}

#[test]
fn every_resync_reason_is_a_reason_of_the_same_name() {
    for &reason in ResyncReason::ALL {
        assert_eq!(Reason::from(reason).as_str(), reason.as_str());
    }
}

#[test]
fn servers_refuse_unknown_words_and_clients_keep_them() {
    assert!(serde_json::from_str::<Priority>(r#""soon""#).is_err());
    for not_a_word in ["1", "null", "[\"low\"]", r#"{"low":null}"#] {
        assert!(serde_json::from_str::<Priority>(not_a_word).is_err(), "{not_a_word}");
    }
    let open: Open<Priority> = serde_json::from_str(r#""soon""#).unwrap();
    assert_eq!((open.known(), open.as_str()), (None, "soon"));
    assert_eq!(serde_json::to_string(&open).unwrap(), r#""soon""#);
    assert_eq!(serde_json::from_str::<Open<Priority>>(r#""low""#).unwrap().known(), Some(Priority::Low));
}
