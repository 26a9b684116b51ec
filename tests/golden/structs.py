"""Structs, references, methods, arrays of structs."""

from synapticos.lang import *

SLOTS = param(u32, 4, max=16)


@struct
class Point:
    """A place in the picture."""

    x: i16
    y: i16


@struct
class Shape:
    corner: Point
    size: Point
    next: u32
    marks: Shaped[Array[u8], 2, 3]


@struct
class Shapes:
    """All that is drawn."""

    items: Shaped[Array[Shape], SLOTS]
    count: u32

    @fn
    def largest(self) -> Shape | None:
        """The shape with the widest size, or None where there is none."""
        best: Shape | None = None
        for shape in self.items[: self.count]:
            if best is None or shape.size.x > best.size.x:
                best = shape
        return best

    @fn
    def add(self, like: Shape) -> bool:
        if self.count == SLOTS:
            return False
        copy(self.items[self.count], like)
        self.count += 1
        return True


@fn
def move_by(point: Point, dx: i16) -> Point:
    point.x += dx
    return point


@fn
def walk(shapes: Shapes, i: u32) -> i32:
    shape = shapes.items[i]
    shape.marks[1, 2] += 1
    corner = move_by(shape.corner, 2)
    last = shapes.largest()
    if last is None:
        return 0
    return i32(corner.x) + last.corner.y + shape.marks[0, i]
