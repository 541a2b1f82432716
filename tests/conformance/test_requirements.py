"""A worker takes only jobs whose requirements (pool, tags, resources, processes) it meets."""

from __future__ import annotations

from rota.domain import requirement
from rota.domain.job import Definition
from rota.domain.requirement import Needs, Offers, Room
from rota.domain.status import Status
from rota.ops import claim, fleet
from rota.ops.gates.offers import STARVES_S
from rota.store import claim_reader
from rota.views.finding import findings
from tests.support.world import NAMESPACE, World


def declare(world: World, job: str, **needs: object) -> None:
    """A job of the queue `default` that needs this."""
    world.register(Definition(name=job, needs=Needs(**needs)))  # type: ignore[arg-type]


def join(world: World, **offers: object) -> int:
    return world.join(offers=Offers(**offers))  # type: ignore[arg-type]


def test_only_workers_of_its_pool_take_a_job(world: World) -> None:
    declare(world, "crunch", pool="cpu")
    heavy, light = world.enqueue(job="crunch"), world.enqueue()
    usual, crunching = join(world), join(world, pools=("cpu",))
    assert [one.id for one in world.claim(usual)] == [light]
    assert [one.id for one in world.claim(crunching)] == [heavy]


def test_a_worker_needs_all_tags_of_a_job(world: World) -> None:
    declare(world, "crunch", tags=["eu", "fast"])
    x = world.enqueue(job="crunch")
    assert world.claim(join(world, tags=["eu"])) == []
    assert [one.id for one in world.claim(join(world, tags=["eu", "fast", "new"]))] == [x]


def test_concurrent_executions_stay_within_the_resources(world: World) -> None:
    declare(world, "crunch", resources={"gpu": 1.0})
    declare(world, "think", resources={"gpu": 2.0})
    ids = [world.enqueue(job="crunch") for _ in range(5)]
    large = world.enqueue(job="think")
    worker = join(world, resources={"gpu": 2.0})
    first = world.claim(worker, 10)
    assert [one.id for one in first] == ids[:2]
    assert world.claim(worker, 10) == []
    world.finish(first[0])
    (third,) = world.claim(worker, 10)
    assert third.id == ids[2]
    for one in (first[1], third):
        world.finish(one)
    rest = world.claim(worker, 10)
    assert [one.id for one in rest] == ids[3:]
    for one in rest:
        world.finish(one)
    assert [one.id for one in world.claim(worker, 10)] == [large]


def test_a_worker_takes_as_many_isolated_jobs_as_it_has_processes_for(world: World) -> None:
    declare(world, "crunch", isolated=True)
    declare(world, "think", isolated=True, tags=["eu"])
    crunches = [world.enqueue(job="crunch") for _ in range(3)]
    others = [world.enqueue() for _ in range(3)]
    world.enqueue(job="think")
    worker = join(world, tags=["eu"])

    def taken(processes: int | None) -> claim.Claimed:
        return world.store.transact(claim.claim, worker, world.served(), 10, None, Room(isolated=processes))

    none = taken(0)
    assert ([one.id for one in none.claims], none.has_no_room) == (others, True)
    assert [one.id for one in taken(2).claims] == crunches[:2]
    assert [one.id for one in taken(-1).claims] == []
    assert len(taken(None).claims) == 2, "where nothing bounds them"


def test_a_worker_that_cannot_start_processes_takes_no_commands(world: World) -> None:
    declare(world, "crunch", isolated=True)
    declare(world, "print", command=True)
    commands = [world.enqueue(job="print") for _ in range(3)]
    world.clock.advance(1)
    world.enqueue(job="crunch")
    plain = world.enqueue()
    worker = join(world)

    def taken(room: Room) -> list[str]:
        found = world.store.transact(claim.claim, worker, world.served(), 10, None, room)
        return [one.id for one in found.claims]

    assert taken(Room(0, 0)) == [plain]
    assert taken(Room(1, 1)) == commands[:1], "one of each kind may try"
    assert taken(Room(0, None)) == commands[1:]


def test_an_execution_without_a_process_reserves_no_resource(world: World) -> None:
    declare(world, "print", command=True, resources={"gpu": 1.0})
    declare(world, "think", resources={"gpu": 1.0})
    world.enqueue(job="print")
    world.clock.advance(2 * STARVES_S)
    x, worker = world.enqueue(job="think"), join(world, resources={"gpu": 1.0})
    found = world.store.transact(claim.claim, worker, world.served(), 10, None, Room(None, 0))
    assert [one.id for one in found.claims] == [x]


def test_executions_with_small_needs_do_not_starve_one_with_large_needs(world: World) -> None:
    declare(world, "crunch", resources={"gpu": 1.0})
    declare(world, "think", resources={"gpu": 2.0})
    worker = join(world, resources={"gpu": 2.0})
    world.enqueue(job="crunch")
    (running,) = world.claim(worker)
    large = world.enqueue(job="think")
    world.clock.advance(1)
    small, light = world.enqueue(job="crunch"), world.enqueue()
    world.clock.advance(STARVES_S + 1)
    world.store.transact(fleet.beat, [worker], 600)
    assert [one.id for one in world.claim(worker)] == [light], "the card that is free is kept for it"
    world.finish(running)
    (next_,) = world.claim(worker)
    assert next_.id == large
    world.finish(next_)
    assert [one.id for one in world.claim(worker)] == [small]


def test_other_jobs_run_while_one_waits_for_resources(world: World) -> None:
    declare(world, "crunch", resources={"gpu": 1.0})
    for _ in range(3):
        world.enqueue(job="crunch")
    light = [world.enqueue() for _ in range(3)]
    worker = join(world, resources={"gpu": 1.0})
    taken = {one.id for one in world.claim(worker, 10)} | {one.id for one in world.claim(worker, 10)}
    assert len(taken) == 4
    assert set(light) <= taken


def test_a_retried_or_rescued_execution_keeps_its_needs(world: World) -> None:
    declare(world, "crunch", pool="cpu")
    x = world.enqueue(job="crunch")
    first = join(world, pools=("cpu",))
    world.claim(first)
    world.store.transact(fleet.declare_dead, first, "gone")
    assert world.status(x) is Status.QUEUED
    assert world.claim(join(world)) == []
    assert [one.id for one in world.claim(join(world, pools=("cpu",)))] == [x]


def test_executions_keep_the_needs_that_their_job_had_when_they_were_enqueued(world: World) -> None:
    declare(world, "crunch", pool="cpu")
    before = world.enqueue(job="crunch")
    declare(world, "crunch", pool="memory")
    after = world.enqueue(job="crunch")
    assert [one.id for one in world.claim(join(world, pools=("memory",)))] == [after]
    assert [one.id for one in world.claim(join(world, pools=("cpu",)))] == [before], "as it was accepted"


def test_a_new_queue_keeps_the_needs_of_the_job(world: World) -> None:
    declare(world, "crunch", pool="cpu")
    x = world.enqueue(job="crunch", queue="never seen")
    assert world.claim(join(world)) == []
    assert [one.id for one in world.claim(join(world, pools=("cpu",)))] == [x]


def test_executions_that_no_worker_can_take_are_reported(world: World) -> None:
    declare(world, "crunch", pool="cpu", resources={"gpu": 1.0})
    x = world.enqueue(job="crunch")
    join(world)
    (found,) = world.store.read(findings, NAMESPACE)
    assert found.text == "crunch cannot run: no live worker has pool cpu, 1 gpu"
    facts = world.store.read(claim_reader.claim_facts, NAMESPACE, x)
    assert requirement.words(facts.requirements or "") == "pool cpu, 1 gpu"
    join(world, pools=("cpu",))
    assert len(world.store.read(findings, NAMESPACE)) == 1, "it has no card"
    join(world, pools=("cpu",), resources={"gpu": 1.0})
    assert world.store.read(findings, NAMESPACE) == []


def test_a_worker_that_takes_all_jobs_ignores_needs(world: World) -> None:
    declare(world, "crunch", pool="cpu", tags=["eu"], resources={"gpu": 100.0})
    ids = [world.enqueue(job="crunch") for _ in range(5)]
    assert [one.id for one in world.claim(join(world, everything=True), 10)] == ids
