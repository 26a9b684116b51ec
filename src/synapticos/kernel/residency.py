"""Residency: which models the accelerator holds, and what it has cost to bring them there.

The accelerator has a few places, most often one. A model that is to run and has no place gets an empty one, or else
that of the model whose last use is longest ago; a pinned model keeps its place. What is in a place is a handle, so a
model that is unregistered and one that gets its slot are told apart.

Invariant: no handle is in two places; pinned models are fewer than places.
"""

from synapticos.lang import *
from synapticos.kernel.bits import bit
from synapticos.kernel.capacity import ACCELERATOR, MAX_MODELS, RESIDENT_MODELS

NOWHERE = RESIDENT_MODELS  # no place
LOADS = ACCELERATOR * (MAX_MODELS - 1) + 1


@struct
class Place:
    model: u32  # handle; 0: empty
    used: u32  # `Residency.uses` at its last use


@struct
class Loads:
    """What one model has cost."""

    count: u32  # times that it was taken in; wraps
    ticks: u32  # spent on it; at most the largest u32


@struct
class Residency:
    places: Shaped[Array[Place], RESIDENT_MODELS]
    loads: Shaped[Array[Loads], LOADS]  # by model slot
    uses: u32  # a clock for the order of uses; wraps
    swaps: u32  # models put out to make room for another; wraps
    pinned: u32  # bit n: the model of slot n keeps its place

    @fn
    def find(self, handle: u32) -> u32:
        """The place of a model, or NOWHERE."""
        for i in range(RESIDENT_MODELS):
            if handle != 0 and self.places[i].model == handle:
                return i
        return NOWHERE

    @fn
    def use(self, place: u32) -> None:
        """The model in a place runs now."""
        self.uses = wrap(u32, self.uses + 1)
        self.places[place].used = self.uses

    @fn
    def make_room(self, capacity: u32) -> u32:
        """Empty one of the first `capacity` places (0 is 1; at most RESIDENT_MODELS count): which.

        An empty one if there is, else the one used longest ago; NOWHERE if every model is pinned.
        """
        count = min(max(capacity, 1), RESIDENT_MODELS)
        best: u32 = NOWHERE
        age: u32 = 0
        for i in range(count):
            place = self.places[i]
            if place.model == 0:
                return i
            idle = wrap(u32, self.uses - place.used)
            if not self.is_pinned(place.model) and (best == NOWHERE or idle > age):
                best = i
                age = idle
        if best != NOWHERE:
            self.places[best].model = 0
            self.swaps = wrap(u32, self.swaps + 1)
        return best

    @fn
    def put(self, place: u32, handle: u32, ticks: u32) -> None:
        """The model is in an empty place now, and it took so long."""
        self.places[place].model = handle
        self.use(place)
        if ACCELERATOR != 0:
            loads = self.loads[(handle & 0xFF) - 1]
            loads.count = wrap(u32, loads.count + 1)
            loads.ticks = sat(u32, u64(loads.ticks) + ticks)

    @fn
    def drop(self, handle: u32) -> None:
        """The accelerator no longer knows this model, and nothing is pinned for it."""
        place = self.find(handle)
        if place != NOWHERE:
            self.places[place].model = 0
        self.unpin(handle)

    @fn
    def unpin(self, handle: u32) -> None:
        if handle != 0:
            self.pinned = self.pinned & ~bit((handle & 0xFF) - 1)

    @fn
    def clear(self) -> None:
        """It holds nothing. Pins and figures stay."""
        for i in range(RESIDENT_MODELS):
            self.places[i].model = 0

    @fn
    def empty(self) -> bool:
        for i in range(RESIDENT_MODELS):
            if self.places[i].model != 0:
                return False
        return True

    @fn(pure=True)
    def is_pinned(self, handle: u32) -> bool:
        return handle != 0 and self.pinned & bit((handle & 0xFF) - 1) != 0

    @fn
    def pin(self, handle: u32, capacity: u32) -> bool:
        """Keep a model in its place from now on, once it has one. False if no place would be left for others."""
        if self.is_pinned(handle):
            return True
        count: u32 = 1
        for i in range(MAX_MODELS):
            if self.pinned & bit(i) != 0:
                count += 1
        if count >= min(max(capacity, 1), RESIDENT_MODELS):
            return False
        self.pinned = self.pinned | bit((handle & 0xFF) - 1)
        return True
