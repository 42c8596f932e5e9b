//! The list of cases. A case that is not in it does not compile without a warning, and one that is in it is run over every store.

/// From the list: one function per case for [`crate::conformance!`], and the cases as values.
macro_rules! listed {
    ($d:tt $($name:ident in $($module:ident)::+ { $($case:ident,)+ })+) => {
        $(
            #[doc(hidden)]
            pub mod $name {
                use crate::conformance::{Harness, $($module)::+ as cases};
                $(
                    pub fn $case(harness: &dyn Harness) {
                        crate::conformance::run(cases::$case(harness));
                    }
                )+
            }
        )+

        /// Every case, in the order of the list.
        pub const CASES: &[$crate::conformance::Case] = &[
            $($($crate::conformance::Case { name: concat!(stringify!($name), "::", stringify!($case)), run: $name::$case },)+)+
        ];

        /// Runs the conformance suite over a store: a test for every case. `$harness` makes a [`Harness`](crate::conformance::Harness).
        #[macro_export]
        macro_rules! conformance {
            ($d harness:expr) => {
                $(
                    mod $name {
                        #[allow(unused_imports, reason = "the harness may be named by a path from the crate's root")]
                        use super::*;
                        $(
                            #[test]
                            fn $case() {
                                $crate::conformance::list::$name::$case(&$d harness);
                            }
                        )+
                    }
                )+
            };
        }
    };
}

listed! { $
    append in append {
        events_are_numbered_from_one_without_gaps_and_answered_in_order,
        a_repeat_answers_the_first_event_also_after_a_restart,
        a_key_for_another_body_is_a_conflict_and_nothing_of_the_request_is_kept,
        the_same_key_twice_in_a_request_is_a_duplicate_of_the_first,
        an_expired_key_is_as_good_as_none,
        keys_and_numbers_belong_to_one_tenant,
        five_hundred_concurrent_publishes_with_one_key_make_one_event,
        a_tenant_that_is_not_active_takes_nothing,
        a_body_that_is_no_text_is_refused_and_changes_nothing,
        an_empty_request_is_answered,
    }
    pages in pages {
        heads_are_those_of_the_tenants_that_are_there,
        a_page_starts_behind_after_and_keeps_its_bounds,
        a_page_is_bounded_by_bytes_and_a_larger_first_row_comes_alone,
        every_column_is_read_as_it_was_written,
        only_a_tenant_that_is_there_has_pages,
        logs_of_tenants_do_not_touch,
        a_page_and_its_head_are_of_one_snapshot,
    }
    retention in retention {
        the_floor_goes_past_older_rows_only,
        one_step_raises_the_floor_by_at_most_its_limit,
        rows_are_swept_once_they_have_lain_below_the_floor_long_enough,
        rows_that_fell_below_the_floor_later_wait_for_their_own_time,
        numbers_go_on_after_everything_was_removed_and_a_restart,
        retention_of_one_tenant_leaves_the_others_alone,
        expired_keys_are_removed_oldest_first_and_bounded,
    }
    listener in listener {
        commit_order_is_sequence_order_is_listener_order,
        the_listener_gets_the_events_and_the_epoch_as_readers_see_them,
    }
    units in units {
        a_refusal_of_the_use_case_undoes_the_unit_and_reaches_the_caller,
        what_a_failed_unit_knew_of_a_log_is_forgotten_with_it,
        what_fails_for_a_passing_reason_is_repeated_on_a_fresh_transaction,
        what_fails_again_and_again_is_answered_as_transient,
    }
    identity in identity {
        a_tenant_is_created_with_an_empty_log_and_its_epoch,
        tenants_are_listed_by_id_with_the_heads_of_their_logs,
        a_tenants_state_is_changed_and_kept,
        principals_are_created_changed_and_deleted,
        principals_are_listed_by_id_behind_an_id,
        enabled_owners_are_counted,
        deleting_a_principal_takes_its_tokens_grants_and_consumers_along,
        a_credential_has_all_that_authenticating_needs_whatever_the_states,
        live_tokens_are_neither_revoked_nor_expired,
        all_tokens_of_a_principal_are_revoked_at_once_and_each_is_told_once,
        tokens_are_listed_in_creation_order_behind_an_id,
        uses_of_tokens_are_noted_and_the_later_one_wins,
        spaces_and_channels_are_created_once_and_listed_by_id,
        resources_exist_when_they_were_created,
        deleting_a_space_takes_its_channels_and_the_grants_on_them_along,
        deleting_a_channel_takes_the_grants_on_it_along,
        the_same_grant_twice_answers_the_present_one,
        grants_are_listed_in_creation_order_behind_an_id,
        rights_are_the_principals_with_its_grants,
        names_of_two_tenants_do_not_touch,
        events_of_administration_are_appended_with_the_change_that_they_tell_of,
    }
    audit in audit {
        entries_are_kept_whole_and_listed_newest_first,
        entries_are_filtered_by_actor_action_and_decision,
        denials_add_up_per_actor_action_target_and_minute,
        an_aggregated_line_bears_the_start_of_its_minute,
        denials_of_an_unknown_tenant_are_left_out,
        an_answer_is_found_while_it_is_young_and_its_key_is_taken_as_long,
        pruning_removes_what_is_older_and_is_bounded,
    }
    consumers in consumers {
        a_first_take_makes_the_row_at_the_committed_head,
        a_later_take_keeps_what_is_acknowledged_also_after_a_restart,
        an_agent_has_at_most_so_many_consumers,
        a_take_that_changes_the_holder_clears_the_window_and_raises_the_version,
        nobody_takes_for_an_inactive_tenant_or_an_absent_agent,
        a_save_matches_the_holder_and_never_lowers,
        a_batch_of_saves_is_answered_in_order_and_each_stands_alone,
        a_verification_learns_what_rest_acknowledged,
        an_ack_needs_no_holder_and_never_lowers,
        an_ack_changes_nothing_in_a_row_of_another_epoch,
        a_restart_clears_the_window_and_moves_the_cursor_down_only_from_above_the_head,
        a_window_is_written_only_for_the_rest_holder_and_the_version_that_was_read,
        acks_and_saves_leave_the_window_alone,
        consumers_are_listed_by_name_behind_a_name,
        takes_since_an_instant_are_told_with_their_holder,
        consumers_of_one_agent_do_not_touch,
    }
    schedule in schedule {
        a_scheduled_event_is_stored_whole,
        the_listing_is_by_time_then_id_and_continues_behind_a_position,
        the_key_is_taken_at_scheduling_and_freed_by_cancelling,
        a_key_of_an_appended_event_is_known_to_scheduling,
        a_waiting_events_key_stands_however_long_it_waits,
        a_promotion_is_appended_as_new_and_its_key_learns_the_seq,
        a_promotion_that_fails_leaves_the_event_waiting,
        a_failed_event_is_listed_and_neither_due_nor_promoted,
        due_are_waiting_events_of_active_tenants_oldest_first,
        a_channel_exists_as_the_transaction_sees_it,
        an_agent_exists_while_it_is_enabled,
    }
    inbox_deliver in inbox::deliver {
        an_event_leaves_one_item_for_each_recipient_with_what_it_was_published_with,
        the_heads_of_the_recipients_rise_with_the_events_and_no_others,
        an_item_that_expires_has_its_inbox_looked_at_by_then,
        a_repeat_leaves_nothing_and_a_conflict_nothing_of_its_request,
        a_unit_that_fails_leaves_neither_event_nor_items_nor_inboxes,
        a_scheduled_event_leaves_its_items_when_it_is_promoted,
        two_recipients_of_one_event_go_their_own_ways,
        inboxes_of_other_tenants_are_others,
        an_inbox_of_a_tenant_that_is_not_served_is_not_changed_and_one_that_is_not_there_not_read,
        a_row_is_opened_once_and_saved_as_a_whole,
    }
    inbox_gone in inbox::gone {
        an_agent_that_is_made_again_starts_with_an_empty_inbox,
        an_inbox_that_work_opened_after_its_agent_went_is_not_the_next_agents,
        what_was_published_while_its_agent_went_is_discarded_though_nobody_of_its_name_comes,
        a_deletion_that_is_rolled_back_closes_nothing,
        items_of_agents_that_are_gone_are_discarded_in_bounded_steps,
        ended_items_go_when_their_making_and_their_end_are_long_past,
        an_event_that_was_scheduled_long_ago_hides_no_old_item,
        a_step_counts_every_row_that_it_reads,
        the_young_rest_of_an_inbox_is_skipped_and_the_next_inbox_is_not,
    }
    inbox_kept in inbox::kept {
        envelopes_come_from_the_log_in_the_order_asked,
        what_a_claim_answers_is_read_at_once_as_it_is_apart,
        the_envelope_of_work_that_is_not_over_outlives_the_log_and_goes_with_the_last_item,
        dead_letters_and_what_is_put_aside_keep_their_envelopes_too,
        an_item_that_ends_before_the_log_goes_leaves_no_copy_and_none_is_counted_for_it,
        a_key_lives_at_least_as_long_as_work_of_its_event_is_current,
        a_key_of_current_work_is_put_off_and_hides_no_other,
    }
    inbox_list in inbox::list {
        a_poll_shows_current_items_by_ring_and_says_whether_more_follow,
        queues_are_named_that_have_something_to_claim,
        a_listing_shows_every_state_by_event_and_filters_all_that_is_given,
        a_poll_looks_at_so_many_items_and_goes_on_where_it_stopped,
        a_poll_reads_no_history,
        a_listing_looks_at_so_many_items_and_its_pages_miss_none,
        the_backlog_counts_by_what_can_be_done_now_and_up_to_a_bound,
        totals_are_by_tenant_the_largest_first_and_quiet_tenants_are_left_out,
        reading_changes_nothing,
    }
    inbox_model in inbox::model {
        an_inbox_answers_as_a_list_of_its_items_would,
    }
    inbox_records in inbox::records {
        the_first_lease_key_that_is_offered_stays_the_tenants,
        a_record_of_claims_is_an_inboxs_own_is_replaced_and_goes_when_it_is_old,
        a_session_is_its_inboxs_own_and_is_touched_and_replaced_by_it_alone,
        sessions_go_with_their_agent_and_when_nothing_was_heard_of_them,
        events_of_the_inbox_are_appended_with_the_change_that_they_tell_of,
    }
    inbox_select in inbox::select {
        items_are_claimed_by_key_then_event_over_all_queues_or_some,
        however_many_queues_there_are_the_first_of_all_come_in_their_order,
        what_is_claimed_rests_or_is_over_is_not_available,
        ten_thousand_long_leases_do_not_hide_one_that_lapsed,
        due_items_of_every_kind_come_in_the_order_of_their_time_and_continue_behind_one,
        a_row_that_cannot_be_read_does_not_hide_what_is_due,
        what_was_found_is_in_the_order_asked_with_gaps,
        an_item_that_is_not_there_is_not_put,
        a_redriven_item_keeps_its_history_and_moves_its_ring,
        inboxes_that_are_due_take_turns_over_tenants_and_inactive_tenants_are_left_out,
        the_priority_of_work_is_in_its_place_among_others,
    }
    inbox_upkeep in inbox::upkeep {
        a_restart_keeps_everything,
    }
    hooks_attempts in hooks::attempts {
        the_last_attempts_of_each_hook_are_kept_newest_first,
        an_attempt_is_answered_as_it_was_noted,
        attempts_of_a_hook_that_is_gone_are_left_out_and_others_need_an_active_tenant,
    }
    hooks_deliveries in hooks::deliveries {
        a_ring_is_answered_as_it_was_stored,
        a_ring_that_is_there_stays_and_one_of_a_hook_that_is_gone_is_left_out,
        a_ring_needs_an_active_tenant,
        the_longest_due_come_first_and_those_of_the_same_instant_in_the_order_of_their_causes,
        a_change_writes_cause_attempts_and_time_and_brings_nothing_back,
        named_rings_are_removed_and_all_of_one_hook_cleared,
        rings_of_a_unit_that_fails_are_not_there,
    }
    hooks_dispatch in hooks::dispatch {
        whoever_takes_the_group_fences_off_whoever_had_it,
        a_position_and_its_rings_are_stored_together_or_not_at_all,
        tenants_with_hooks_come_by_id,
        a_position_needs_an_active_tenant,
        the_first_hook_after_none_finds_no_position_of_earlier_times,
        the_head_is_the_transactions_and_events_about_hooks_are_appended_in_order,
    }
    hooks_due in hooks::due {
        tenants_take_turns_and_within_one_the_longest_due_comes_first,
        hooks_and_tenants_that_are_excepted_give_their_turn_away,
        a_due_hook_comes_with_its_keys_and_its_longest_due_rings,
        rings_of_hooks_in_any_state_are_answered,
        nothing_is_due_of_a_disabled_agent_or_an_inactive_tenant,
        the_next_due_follows_the_rings,
        a_tenant_with_very_many_rings_does_not_delay_another,
    }
    hooks_keys in hooks::keys {
        keys_come_newest_first_as_they_were_stored,
        a_key_of_the_same_id_of_the_same_hook_is_replaced,
        a_key_needs_its_hook_and_an_active_tenant,
        named_keys_are_removed_and_expired_ones_of_any_hook_in_bounded_steps,
        sealed_secrets_of_every_tenant_come_by_hook_and_key,
        a_secret_is_resealed_only_when_it_is_still_what_it_was,
        the_servers_keys_come_by_when_they_begin_to_sign,
    }
    hooks_model in hooks::model {
        rings_are_answered_as_a_list_of_them_would,
    }
    hooks_registrations in hooks::registrations {
        a_hook_is_answered_as_it_was_stored_and_only_to_its_tenant,
        a_change_writes_everything_but_what_a_hook_is,
        a_hook_needs_its_agent_and_an_active_tenant,
        listings_go_by_id_within_kind_and_agent,
        active_hooks_are_those_that_are_rung,
        fifty_creates_at_once_never_exceed_a_ceiling,
        a_hook_goes_with_its_keys_rings_and_attempts,
        an_agent_goes_with_its_hooks_and_one_of_its_name_has_none,
        a_deletion_of_an_agent_that_is_rolled_back_takes_no_hook,
    }
    hooks_upkeep in hooks::upkeep {
        a_restart_keeps_everything,
    }
    damage in damage {
        a_damaged_row_is_refused_whatever_its_column,
        a_missing_row_is_refused_not_skipped,
        a_row_in_anothers_place_is_refused,
    }
    texts in texts {
        odd_texts_of_identities_come_back_as_they_were,
        odd_texts_of_events_and_items_come_back_as_they_were,
        odd_texts_of_what_waits_come_back_as_they_were,
    }
    concurrency in concurrency {
        a_reader_sees_the_log_grow_without_gaps_and_never_finds_a_row_behind_it,
        one_key_makes_one_event_whichever_way_it_comes,
        a_due_event_is_promoted_by_one,
        takes_of_one_consumer_form_a_line,
        takes_at_once_never_exceed_what_an_agent_may_have,
        whoever_lost_a_consumer_saves_nothing_any_more,
        of_writes_of_one_window_version_one_is_kept,
        no_item_is_claimed_twice_however_many_claim,
        no_more_is_claimed_than_an_inbox_may_have_in_flight,
        an_item_is_changed_by_one_after_the_other,
        an_inbox_is_opened_once,
        inboxes_that_are_locked_in_any_order_are_all_changed,
        those_who_share_an_inbox_bring_its_due_time_forward_and_lose_nothing,
        a_tenant_has_one_lease_key_whoever_offered_it,
        what_is_created_at_once_is_created_once,
        of_two_owners_one_stays_when_both_go_at_once,
        an_idempotency_key_is_taken_by_one,
        denials_that_are_counted_at_once_are_all_counted,
        a_ring_that_many_add_is_there_once,
        of_nodes_that_take_a_group_the_last_one_moves_positions,
        a_request_that_names_a_recipient_twice_is_refused_whole_and_its_neighbours_are_not,
    }
}
