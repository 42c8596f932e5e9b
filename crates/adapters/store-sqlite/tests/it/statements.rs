//! No statement goes untested.

use testkit::conformance::Case;
use testkit::conformance::list::CASES;

use crate::conformance::Sqlite;
use crate::{backup, export, hooks, inbox, plans};

/// Cases that take long.
const LONG: &[&str] = &[
    "inbox_model::an_inbox_answers_as_a_list_of_its_items_would",
    "hooks_model::rings_are_answered_as_a_list_of_them_would",
    "inbox_select::ten_thousand_long_leases_do_not_hide_one_that_lapsed",
];

/// The conformance suite and what is this store's own together execute every statement.
#[test]
fn every_statement_is_executed() {
    let own: [fn(); 8] = [
        export::every_row_of_every_table_leaves_once_however_it_is_paged,
        backup::a_restore_begins_another_history_where_the_backup_ended,
        backup::a_restore_releases_consumers_and_clears_their_windows,
        hooks::upkeep::a_restore_leaves_positions_in_the_past_history_so_that_what_waits_is_rung_for,
        hooks::damage::a_check_holds_hooks_against_the_log_and_against_themselves,
        inbox::upkeep::a_restore_forgets_what_claims_were_answered_with_and_that_sessions_were_open,
        inbox::upkeep::a_check_finds_copied_envelopes_and_misses_lost_ones,
        inbox::upkeep::a_check_reads_every_item_and_holds_it_against_the_log,
    ];
    for test in own {
        test();
    }
    // Cases that are long and execute what others do come last, when nothing is missing any more.
    let (long, short): (Vec<&Case>, Vec<&Case>) = CASES.iter().partition(|case| LONG.contains(&case.name));
    for case in short.into_iter().chain(long) {
        if missing().is_empty() {
            return;
        }
        (case.run)(&Sqlite);
    }
    let missing = missing();
    assert!(missing.is_empty(), "{missing:#?}");
}

fn missing() -> Vec<String> {
    let executed = doorstep_store_sqlite::executed_statements();
    plans::statements().into_keys().filter(|name| !executed.contains(name.as_str())).collect()
}
