"""Maps: tolerance, outcome, and the shards of the tally."""

from __future__ import annotations

from random import Random

import pytest

from rota.domain.errors import DefinitionError
from rota.domain.workflow import maps
from rota.domain.workflow.maps import Tally


@pytest.mark.parametrize(
    ("tally", "tolerate", "letter"),
    [
        (Tally(), None, "s"),
        (Tally(success=3), None, "s"),
        (Tally(success=2, open=1), None, "o"),
        (Tally(success=2, failed=1), None, "f"),
        (Tally(open=9, failed=1), None, "f"),
        (Tally(open=9, cancelled=1), None, "f"),
        (Tally(open=8, failed=1, cancelled=1), 2, "o"),
        (Tally(success=8, failed=1, cancelled=1), 2, "s"),
        (Tally(open=7, failed=2, cancelled=1), 2, "f"),
        (Tally(success=1_188, failed=12), "1%", "s"),
        (Tally(open=1_187, failed=13), "1%", "f"),
        (Tally(success=198, failed=2), "0.5%", "f"),
        (Tally(failed=4), "100%", "s"),
        (Tally(skipped=4), None, "k"),
        (Tally(skipped=4, open=1), None, "o"),
        (Tally(skipped=4, success=1), None, "s"),
        (Tally(skipped=4, failed=1), 1, "s"),
    ],
)
def test_outcome(tally: Tally, tolerate: int | str | None, letter: str) -> None:
    assert maps.outcome(tally, tolerate) == letter


@pytest.mark.parametrize(
    ("tally", "letter"),
    [
        (Tally(success=3, open=4, cancelled=3), "o"),
        (Tally(success=3, cancelled=7), "c"),
        (Tally(success=3, cancelled=6, failed=2), "f"),
        (Tally(success=9, cancelled=1), "s"),
    ],
)
def test_outcome_in_a_stopping_run(tally: Tally, letter: str) -> None:
    assert maps.outcome(tally, 1, is_stopping=True) == letter


def test_a_failed_map_stays_failed_in_whatever_order_its_items_end() -> None:
    for seed in range(200):
        random = Random(seed)
        ends = random.choices(["success", "failed", "cancelled", "skipped"], k=random.randint(1, 12))
        tolerate = random.choice([None, 1, 3, "25%"])
        letters = set()
        for _ in range(5):
            random.shuffle(ends)
            seen = "o"
            for done in range(len(ends) + 1):
                counts = {status: ends[:done].count(status) for status in set(ends)}
                letter = maps.outcome(Tally(open=len(ends) - done, **counts), tolerate)
                assert seen in ("o", letter)
                seen = letter
            letters.add(seen)
        assert len(letters) == 1
        assert letters != {"o"}


@pytest.mark.parametrize("tolerate", [-1, "1", "x%", "101%", "-1%", "1/2%", "", "nan%"])
def test_tolerance_that_cannot_be_read(tolerate: int | str) -> None:
    with pytest.raises(DefinitionError, match="tolerate takes a whole number or a percentage"):
        maps.allowed(tolerate, 10)


@pytest.mark.parametrize("width", [0, 1, 1_000, 1_001, 1_600, 1_650, 99_999, 100_000])
def test_shards_hold_every_item_once(width: int) -> None:
    shards = [maps.shard(index) for index in range(width)]
    assert maps.shard_widths(width) == [shards.count(one) for one in range(maps.SHARDS)]
    assert maps.shard_widths(width, width // 3) == [shards[width // 3 :].count(one) for one in range(maps.SHARDS)]


def test_neighbours_share_a_shard() -> None:
    assert [maps.shard(index) for index in (0, 99, 100, 1_000, 1_600)] == [0, 0, 1, 10, 0]


def test_tallies_add_up() -> None:
    assert Tally(open=1, success=2) + Tally(success=3, failed=1) == Tally(open=1, success=5, failed=1)
