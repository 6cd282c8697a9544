"""What somebody should look at: sentences, the gravest first; an empty list when all is well."""

from aftereffect.core.text import amount, counted
from aftereffect.service.experiment.state import State

OUT_OF_RANGE = 0.01
"""The share of reports out of range above which the range is probably wrong."""
GAPS = 0.1
"""The share of missing reports that leaves few windows whole; it means little before ENOUGH of them."""
ENOUGH = 10


def alarms(state: State) -> list[str]:
    """Return the alarms of an experiment."""
    settings, counts = state.settings, state.counts
    found = []
    told = counts["reports"] + counts["missing"]
    span, parts = state.panel.player.effects, settings.max_delay + 1
    if counts["void"] > OUT_OF_RANGE * counts["reports"]:
        found.append(
            f"{counts['void']:,} of {counted(counts['reports'], 'total')} "
            f"({counts['void'] / counts['reports']:.1%}) {'is' if counts['void'] == 1 else 'are'} outside "
            f"[{amount(parts * span.lo)}, {amount(parts * span.hi)}], what the range of one action's effect allows "
            f"over {counted(parts, 'round')}. What lies outside is not learned from: check low, high and max_delay."
        )
    if told >= ENOUGH and counts["missing"] > GAPS * told:
        found.append(
            f"{counts['missing']:,} of {told:,} reports ({counts['missing'] / told:.1%}) are missing; a window with a "
            "gap is void, so learning is slow."
        )
    if state.away:
        gone = ", ".join(settings.arms[i] for i in state.away)
        found.append(f"Away: {gone}. Others are played in its place, and the guarantee is void.")
    found += _long_block(state)
    if state.phase == "running" and state.last < state.warm_until:
        left = state.warm_until - state.last
        rounds = "round is" if left == 1 else f"{left:,} rounds are"
        found.append(f"Warm-up after a pause: the next {rounds} recorded but not learned from.")
    return found


def _long_block(state: State) -> list[str]:
    """Say so when a block lasts far longer than chance explains, as it does when window after window is void."""
    mean = state.plan.mean_block
    length = state.last - state.block_start + 1
    voids = state.panel.counts.void_windows
    # The tail of a block's length is geometric, about e^(-n/mean): 12 means are one block in 160,000.
    if state.block_closed or length <= 12 * mean or not voids:
        return []
    gaps = counted(voids, "time")
    return [f"This block has lasted {length:,} rounds (mean {mean:.0f}): {gaps} it could have ended, but had a gap."]
