"""The rules of the protocol, one by one: each can be left out, and some promise breaks then."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Rules:
    """Each True is a rule that is kept."""

    swap_is_conditional: bool = True
    ledger_is_asked: bool = True
    ledger_is_asked_on_every_attempt: bool = True
    ledger_survives_expiry: bool = True
    what_is_in_the_inbox_is_remembered: bool = True
    the_edge_of_history_is_no_beginning: bool = True
    ledger_remembers_which_epochs: bool = True
    fingerprints_are_compared: bool = True
    manifest_lists_are_asked: bool = True
    receipts_follow_the_commit: bool = True
    inbox_is_left_after_the_commit: bool = True
    unknown_is_not_failed: bool = True
    unknown_is_not_committed: bool = True
    conflict_is_not_final: bool = True
    unknown_producers_are_looked_up: bool = True
    looked_up_after_the_base_was_read: bool = True
    entries_go_after_their_object: bool = True
    forgotten_producers_leave_tombstones: bool = True
    tombstones_go_behind_a_horizon: bool = True
    horizon_never_falls: bool = True
    files_go_with_a_proof: bool = True
    inbox_is_listed: bool = True
    rolled_back_producers_freeze: bool = True
    high_water_mark_is_heeded: bool = True
    high_water_mark_comes_before_deletion: bool = True
    one_attempt_of_an_epoch: bool = True
    older_proofs_are_void_after_a_thaw: bool = True
    who_waits_is_looked_up_after_a_thaw: bool = True
    expiry_spares_what_may_land_again: bool = True
    replays_have_fresh_keys: bool = True

    @classmethod
    def names(cls) -> list[str]:
        return [each.name for each in fields(cls)]
