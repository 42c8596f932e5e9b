//! No statement goes untested.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::conformance::Case;
use testkit::conformance::list::CASES;

use crate::conformance::Postgres;
use crate::{appender, exchange, hints, nodes, plans, staged, upkeep};

/// Cases that run at the same time.
const AT_ONCE: usize = 4;

/// Cases that between them execute nearly everything: they come first, and the rest of the suite only for as long as something is missing.
const RICH: &[&str] = &[
    "concurrency::those_who_share_an_inbox_bring_its_due_time_forward_and_lose_nothing",
    "units::what_fails_again_and_again_is_answered_as_transient",
    "identity::deleting_a_space_takes_its_channels_and_the_grants_on_them_along",
    "append::the_same_key_twice_in_a_request_is_a_duplicate_of_the_first",
    "inbox_gone::items_of_agents_that_are_gone_are_discarded_in_bounded_steps",
    "inbox_deliver::an_inbox_of_a_tenant_that_is_not_served_is_not_changed_and_one_that_is_not_there_not_read",
    "identity::all_tokens_of_a_principal_are_revoked_at_once_and_each_is_told_once",
    "schedule::the_key_is_taken_at_scheduling_and_freed_by_cancelling",
    "consumers::a_later_take_keeps_what_is_acknowledged_also_after_a_restart",
    "inbox_records::a_record_of_claims_is_an_inboxs_own_is_replaced_and_goes_when_it_is_old",
    "hooks_attempts::the_last_attempts_of_each_hook_are_kept_newest_first",
    "hooks_deliveries::a_ring_is_answered_as_it_was_stored",
    "inbox_list::a_listing_shows_every_state_by_event_and_filters_all_that_is_given",
    "inbox_list::totals_are_by_tenant_the_largest_first_and_quiet_tenants_are_left_out",
    "hooks_deliveries::named_rings_are_removed_and_all_of_one_hook_cleared",
    "hooks_dispatch::whoever_takes_the_group_fences_off_whoever_had_it",
    "hooks_keys::the_servers_keys_come_by_when_they_begin_to_sign",
    "pages::logs_of_tenants_do_not_touch",
    "retention::rows_are_swept_once_they_have_lain_below_the_floor_long_enough",
    "schedule::a_promotion_that_fails_leaves_the_event_waiting",
    "inbox_deliver::the_heads_of_the_recipients_rise_with_the_events_and_no_others",
    "hooks_keys::sealed_secrets_of_every_tenant_come_by_hook_and_key",
    "hooks_registrations::a_hook_is_answered_as_it_was_stored_and_only_to_its_tenant",
    "append::keys_and_numbers_belong_to_one_tenant",
    "identity::names_of_two_tenants_do_not_touch",
    "consumers::an_agent_has_at_most_so_many_consumers",
    "inbox_gone::the_young_rest_of_an_inbox_is_skipped_and_the_next_inbox_is_not",
    "inbox_select::what_is_claimed_rests_or_is_over_is_not_available",
    "hooks_deliveries::a_ring_needs_an_active_tenant",
    "hooks_registrations::listings_go_by_id_within_kind_and_agent",
    "hooks_registrations::active_hooks_are_those_that_are_rung",
    "append::an_empty_request_is_answered",
    "retention::expired_keys_are_removed_oldest_first_and_bounded",
    "identity::tokens_are_listed_in_creation_order_behind_an_id",
    "audit::an_aggregated_line_bears_the_start_of_its_minute",
    "consumers::a_verification_learns_what_rest_acknowledged",
    "consumers::a_restart_clears_the_window_and_moves_the_cursor_down_only_from_above_the_head",
    "consumers::takes_since_an_instant_are_told_with_their_holder",
    "inbox_deliver::a_unit_that_fails_leaves_neither_event_nor_items_nor_inboxes",
    "inbox_select::a_row_that_cannot_be_read_does_not_hide_what_is_due",
    "inbox_select::inboxes_that_are_due_take_turns_over_tenants_and_inactive_tenants_are_left_out",
    "hooks_due::a_due_hook_comes_with_its_keys_and_its_longest_due_rings",
    "concurrency::whoever_lost_a_consumer_saves_nothing_any_more",
];

/// What is this store's own.
const OWN: &[fn()] = &[
    appender::a_commit_whose_connection_is_cut_is_answered_truthfully,
    exchange::everything_arrives_and_is_served_on,
    nodes::nodes_show_themselves_and_are_forgotten,
    nodes::work_is_one_nodes_until_its_lease_expires_and_its_generation_rises,
    hints::what_one_node_tells_the_other_hears_however_much_it_is,
    staged::moving::repeats_are_dropped_and_conflicts_are_listed_and_hold_up_nobody,
    staged::moving::what_vanished_meanwhile_fails_its_event_and_no_other,
    upkeep::partitions_go_when_their_day_is_given_up_and_hold_up_nobody,
    upkeep::a_new_history_keeps_the_numbers_and_is_refused_while_servers_run,
    upkeep::the_databases_clock_is_followed_and_never_runs_back,
    upkeep::floors_rise_behind_what_was_taken_and_hide_nothing,
    upkeep::a_copy_that_nobody_needs_and_nobody_removed_goes_with_the_pruning,
];

/// Statements that no test waits for, each with the reason.
const ELSEWHERE: &[(&str, &str)] = &[("store/ping", "a connection that is quiet for ten seconds is asked whether it lives")];

type Work<'a> = Box<dyn Fn() + Sync + 'a>;

fn missing() -> BTreeSet<String> {
    let executed = doorstep_store_postgres::executed_statements();
    let is_elsewhere = |name: &String| ELSEWHERE.iter().any(|(known, _)| name == known);
    plans::statements().into_keys().filter(|name| !executed.contains(name.as_str()) && !is_elsewhere(name)).collect()
}

/// The conformance suite and what is this store's own execute every statement.
#[test]
fn every_statement_is_executed() {
    let is_rich = |case: &&Case| RICH.contains(&case.name);
    assert_eq!(CASES.iter().filter(is_rich).count(), RICH.len(), "a case was renamed");
    let cases = CASES.iter().filter(is_rich).chain(CASES.iter().filter(|case| !is_rich(case)));
    let own = OWN.iter().map(|test| Box::new(test) as Work<'_>);
    let all: Vec<Work<'_>> = own.chain(cases.map(|case| Box::new(|| (case.run)(&Postgres)) as Work<'_>)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(work) = all.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !missing().is_empty()) {
            work();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let missing = missing();
    assert!(missing.is_empty(), "{missing:#?}");
}
