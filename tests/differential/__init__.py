"""Two databases, one behaviour: the same calls at the same times, and every answer, hint and row must be the same.

    side      one database, and its words turned into words that both have
    actions   everything that can be asked of a store, drawn from a seed
    duel      asks both, and compares

A seed is always the same sequence:

    python -m tests.differential --seeds 100
    python -m tests.differential --seed 17 --steps 500
"""
