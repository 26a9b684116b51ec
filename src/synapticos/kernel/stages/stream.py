"""Features of a stream: frames come out as their last sample comes in, with the bytes that a whole clip would give.

State is memory of the caller: a `FeatureStream`, then the tables that never change, then the samples that the next
frame shares with the last. A stream has no end, so frames are not padded and no range is measured from a highest value.
"""

from synapticos.lang import *
from synapticos.kernel.stages.features import (
    PADDED,
    FeatureConfig,
    FeatureWork,
    audible,
    feature_floats,
    feature_load,
    feature_logs,
    feature_row,
    feature_span,
    feature_width,
    feature_work,
    feature_share,
    is_features,
)
from synapticos.kernel.status import Status


@struct
class FeatureStream:
    filled: u32  # samples kept
    skip: u32  # samples to drop before the next frame begins, where frames lie apart
    reserved: Shaped[Array[u32], 2]


STREAM_BYTES = sizeof(FeatureStream)


@fn(pure=True)
def is_stream(config: FeatureConfig) -> bool:
    """Features that need no clip around them."""
    return is_features(config) and config.placing < PADDED and config.range_db == 0.0


@fn(pure=True)
def stream_size(config: FeatureConfig) -> u32:
    """Bytes of memory for a stream of an accepted configuration."""
    return STREAM_BYTES + 4 * (feature_floats(config) + feature_span(config))


@fn
def stream_reset(config: FeatureConfig, memory: Ptr[u8], size: u32) -> Status:
    """Begin: silence before, nothing kept. INVAL for features that a stream cannot have; NOMEM for too little memory."""
    if not is_stream(config):
        return Status.INVAL
    if size < stream_size(config):
        return Status.NOMEM
    stream = view(FeatureStream, memory)
    stream.filled = 0
    stream.skip = 0
    stream.reserved[0] = 0
    stream.reserved[1] = 0
    work = local(FeatureWork)
    feature_work(config, view(f32, memory[STREAM_BYTES:]), work)
    return Status.OK


@fn
def stream_push(
    config: FeatureConfig, memory: Ptr[u8], size: u32, x_data: Ptr[u8], short: bool, n: u32, out: Ptr[f32], room: u32
) -> tuple[Status, u32]:
    """Take n samples, f32 or (`short`) i16; the second result is how many frames they completed, all in `out`.

    Returns OK; INVAL or NOMEM as `stream_reset`; NOMEM too if more than `room` frames would come: then nothing was taken.
    The configuration is the one that `stream_reset` saw.
    """
    if not is_stream(config) or n > 0x3FFFFFFF:
        return Status.INVAL, 0
    if size < stream_size(config):
        return Status.NOMEM, 0
    stream = view(FeatureStream, memory)
    span = feature_span(config)
    hop = u32(config.hop)
    if stream.filled >= span:
        return Status.INVAL, 0
    skipped = min(stream.skip, n)
    total = stream.filled + (n - skipped)
    frames: u32 = 0
    if total >= span:
        frames = 1 + (total - span) // hop
    if frames > room:
        return Status.NOMEM, 0
    floats = view(f32, memory[STREAM_BYTES:])
    kept = floats[feature_floats(config) :]
    work = local(FeatureWork)
    feature_share(config, floats, work)
    width = feature_width(config)
    at: u32 = 0
    done: u32 = 0
    while at < n:
        if stream.skip > 0:
            skipped = min(stream.skip, n - at)
            stream.skip -= skipped
            at += skipped
        else:
            count = min(span - stream.filled, n - at)
            if short:
                shorts = view(i16, x_data)
                for i in range(count):
                    kept[stream.filled + i] = f32(shorts[at + i]) * 0.000030517578125
            else:
                samples = view(f32, x_data)
                for i in range(count):
                    kept[stream.filled + i] = audible(samples[at + i])
            at += count
            stream.filled += count
            if stream.filled == span:
                feature_load(config, work, view(u8, kept), False, span, 0)
                highest = feature_logs(config, work)
                feature_row(config, work, highest, out[done * width :])
                done += 1
                stream.filled = 0
                if hop < span:
                    move(kept, kept[hop:], span - hop)
                    stream.filled = span - hop
                else:
                    stream.skip = hop - span
    return Status.OK, done
