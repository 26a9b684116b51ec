"""What the random programs do not write: references, tables, results, nested storage, text. On all engines."""

from __future__ import annotations

import pytest

from synapticos.kernel.log import Log
from synapticos.kernel.note import Note
from synapticos.kernel.status import Status
from synapticos.lang import *

SIZE = param(u32, 3, max=8)
DOUBLE = SIZE * 2
GREETING = rom(b"hi")
MATRIX = rom(i32, [[1, 2, 3], [4, 5, 6]])


class Mode(u8, Enum):
    OFF = 0
    ON = 1
    AUTO = 7


@struct
class Point:
    x: i32
    y: i32

    @fn
    def shift(self, by: i32) -> Point:
        self.x += by
        return self


@struct
class Node:
    at: Point
    trail: Shaped[Array[Point], 3]
    modes: Shaped[Array[Mode], 4]
    next: Ptr[u8] | None
    buffers: Shaped[Array[Ptr[u8]], 2]
    weights: Shaped[Array[f32], 2]
    ready: bool


@struct
class World:
    nodes: Shaped[Array[Node], SIZE]
    count: u32

    @fn
    def pick(self, least: i32) -> Node | None:
        best: Node | None = None
        for node in self.nodes[: self.count]:
            if node.at.x < least:
                continue
            if best is not None and best.at.x >= node.at.x:
                continue
            best = node
        return best

    @fn
    def find(self, x: i32) -> tuple[Status, Node | None, u32]:
        for i in range(self.count):
            node = self.nodes[i]
            if node.at.x == x:
                return Status.OK, node, i
        return Status.INVAL, None, 0


@fn
def touch(world: World, x: i32) -> tuple[Status, i32]:
    node, index = check(world.find(x))
    node.trail[index].shift(5).y = 2
    node.modes[index] = Mode.AUTO
    total: i32 = 0
    for point in node.trail:
        total += point.x * 10 + point.y
    return Status.OK, total


@fn
def best(world: World, least: i32) -> i32:
    node = world.pick(least)
    return -1 if node is None else node.at.x


@fn
def capacities() -> u32:
    return SIZE * 100 + DOUBLE + len(GREETING)


@fn
def matrix(r: u32) -> i32:
    row = MATRIX[r, :]
    total: i32 = 0
    for i in range(3):
        total = total * 10 + row[i]
    return total + MATRIX[1 - r, 2]


@fn
def pointers(node: Node, data: Ptr[u8]) -> u32:
    node.buffers[1] = data[2:]
    node.next = data
    inner = node.buffers[1]
    inner[0] = 9
    after = node.next
    if after is None:
        return 0
    words = view(u16, after)
    head = view(Point, after[4:])
    head.x = -1
    node.next = None
    return u32(after[2]) * 1000 + words[1]


@fn
def modes(node: Node) -> u32:
    on: u32 = 0
    for i in range(4):
        match node.modes[i]:
            case Mode.OFF:
                continue
            case Mode.ON:
                on += 1
            case Mode.AUTO:
                break
    node.ready = on == 2
    return on if node.ready else on + 100


Change = Fn[[Point, i32], tuple[Status, i32]]


@fn
def grow(point: Point, by: i32) -> tuple[Status, i32]:
    point.x += by
    return Status.OK, point.x


@fn
def fail(point: Point, by: i32) -> tuple[Status, i32]:
    return Status.NOMEM, 0


CHANGES = table(Change, [grow, fail])


@fn
def change(which: u32, point: Point) -> tuple[Status, i32]:
    first = check(CHANGES[which](point, 3))
    status, second = CHANGES[which](point, first)
    return status, second


@fn
def storage(n: u32) -> i32:
    points = local(Point, 3)
    one = local(Point)
    bytes_ = local(u8, 12)
    one.x = 7
    copy(points[1], one)
    one.x = 8
    view(u32, bytes_)[1] = 0x01020304
    points[n].shift(1)
    while True:
        one.x -= 1
        if one.x == 5:
            break
    return points[1].x * 100 + one.x * 10 + bytes_[4]


@fn
def unset(n: u32) -> u32:
    words = local(u32, 4, zero=False)
    point = local(Point, zero=False)
    words[n] = 5
    point.x = 3
    return words[n] + u32(point.x)


@fn
def read_unset() -> u32:
    words = local(u32, 4, zero=False)
    return words[1]


@fn
def floats(node: Node) -> f32:
    node.weights[0] = 0.1
    node.weights[1] = node.weights[0] * 3.0
    return -node.weights[1] / 7.0


@fn
def say(log_: Log, note: Note, n: i32, mode: Mode, ready: bool) -> Status:
    console.print(f"n={n:>4} {mode} {ready} {u32(255):x} {u8(7):03}|")
    console.print("{plain}")
    log.warning(log_, f"n is {n}, {ready}, {mode}")
    return refuse(note, Status.NOMEM, f"not {n}")


ROOTS = [touch, best, capacities, matrix, pointers, modes, change, storage, unset, floats, say]


@pytest.fixture
def e(make):
    return make(*ROOTS)


def test_methods_references_and_results(e):
    world = e.new(World, count=3)
    for i, x in enumerate((10, 30, 20)):
        world.nodes[i].at.x = x
    assert e(touch, world, 30) == (Status.OK, 52)
    assert world.nodes[1].trail[1].x == 5 and world.nodes[1].modes[1] == Mode.AUTO
    assert e(touch, world, 31) == (Status.INVAL, 0)
    assert [e(best, world, least) for least in (0, 25, 31)] == [30, 30, -1]
    world.count = 1
    assert e(best, world, 0) == 10


def test_capacities_are_of_the_build(make):
    assert make(*ROOTS)(capacities) == 309
    assert make(capacities, SIZE=5)(capacities) == 513


def test_rows_of_tables(e):
    assert [e(matrix, r) for r in (0, 1)] == [129, 459]


def test_pointers_in_structs(e):
    data = e.array(u8, 16)
    data[3] = 1
    node = e.new(Node)
    assert e(pointers, node, data) == 9265
    assert bytes(data)[4:8] == b"\xff" * 4
    assert node.next == 0


def test_match_continues_and_breaks_the_loop_around_it(e):
    node = e.new(Node, modes=[1, 0, 1, 1])
    assert e(modes, node) == 103 and node.ready is False
    node = e.new(Node, modes=[1, 1, 7, 1])
    assert e(modes, node) == 2 and node.ready is True


def test_functions_through_tables(e):
    point = e.new(Point, x=1)
    assert e(change, 0, point) == (Status.OK, 8)
    assert e(change, 1, point) == (Status.NOMEM, 0)
    with pytest.raises(Trap):
        e(change, 2, point)


def test_local_storage(e):
    assert e(storage, 1) == 854
    assert e(storage, 0) == 754


def test_storage_that_is_not_zeroed(e, make):
    assert e(unset, 2) == 8
    assert make(read_unset, checks=True)(read_unset) == 0xA5A5A5A5  # a release build of it is refused by the C compiler


def test_single_precision(e):
    import numpy as np

    weight = np.float32(np.float32(0.1) * np.float32(3.0))
    assert np.float32(e(floats, e.new(Node))) == np.float32(-weight / np.float32(7.0))


def test_text(e):
    note = e.new(Note)
    log_ = e.new(Log)
    e.board.take_console()
    assert e(say, log_, note, -5, Mode.AUTO, True) == Status.NOMEM
    assert e.board.take_console() == b"n=  -5 7 1 ff 007|\n{plain}\n"
    assert note.code == Status.NOMEM and note.args[0] == (1 << 64) - 5
