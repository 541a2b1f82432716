"""A seeded simulation of a whole fleet, in one thread and on a virtual clock.

The code under test is real: the store (SQLite or PostgreSQL), the operations, the supervisor with all its loops, the
wire to its children, and the loops of a child. What surrounds it is not:

    loop      an event loop whose time jumps to the next timer, and processes that can be stopped and killed
    clocks    the database's clock, which jumps, and the machines' own, which are wrong
    calls     the way to the store: calls are late, fail before, inside or after the commit, or vanish
    bus       hints that are lost, doubled and late
    machine   where a supervisor runs: it starts processes that live on the loop, and has a port with faults
    child     a process of a machine, with the child's end of the wire
    clients   who enqueue, cancel, replay, discard, pause, and repeat what they are not sure of
    bodies    jobs that succeed, fail, hang, lie and kill
    chaos     what happens to machines, networks and clocks
    witness   sees every row that changes, in every transaction that commits

After some time all faults are healed and everything must come to its end; then `checker` holds the three witnesses
(the answers that clients got, the effects outside, the database) against the invariants. One seed is one run, and the
same seed is always the same run:

    python -m tests.simulation --seeds 1000
    python -m tests.simulation --seed 17
    python -m tests.simulation --database postgres --seeds 25
"""
