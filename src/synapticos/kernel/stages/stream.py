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
from synapticos.kernel.stages.operands import describe, is_whole
from synapticos.kernel.status import Status
from synapticos.kernel.tensor import DType, StageCall, Tensor


@struct
class FeatureStream:
    filled: u32  # samples kept
    skip: u32  # samples to drop before the next frame begins, where frames lie apart
    reserved: Shaped[Array[u32], 2]  # the first: 1 once `stream_features` has begun


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


@struct
class StreamConfig:
    """The configuration of stream_features: the latest `rows` frames of a stream."""

    features: FeatureConfig
    rows: u16
    reserved: u16


STREAM_CONFIG_BYTES = sizeof(StreamConfig)
MAX_ROWS: Final[u32] = 4096


@fn(pure=True)
def is_window(config: StreamConfig) -> bool:
    return is_stream(config.features) and config.rows != 0 and config.rows <= MAX_ROWS


@fn(pure=True)
def window_floats(config: StreamConfig) -> u32:
    return config.rows * feature_width(config.features)


@fn
def stream_features(x: Tensor, x_data: Ptr[u8], y: Tensor, y_data: Ptr[u8], config: StreamConfig, state: Ptr[u8], state_bytes: u32) -> Status:
    """Take the samples in x (f32 or i16, any number); y is the latest `rows` frames, oldest first. Before the first sample
    there was silence.

    `state` is zeroed before the first call; afterwards it is this function's. Returns OK; INVAL if the configuration is
    bad (`stream_features_check`), or x is not f32 or i16 of its size; NOMEM if the result does not fit y, or `state` is
    smaller than `stream_features_state`.
    """
    if not is_window(config) or not is_whole(x) or (x.dtype != DType.FLOAT32 and x.dtype != DType.INT16):
        return Status.INVAL
    features = config.features
    size = stream_size(features)
    floats = window_floats(config)
    if y.size // 4 < floats or state_bytes < size + 4 * floats:
        return Status.NOMEM
    width = feature_width(features)
    stream = view(FeatureStream, state)
    window = view(f32, state[size:])
    latest = window[floats - width :]
    if stream.reserved[0] == 0:
        status = stream_reset(features, state, size)
        if status != Status.OK:
            return status
        stream.reserved[0] = 1
        work = local(FeatureWork)
        feature_share(features, view(f32, state[STREAM_BYTES:]), work)
        fill(work.bins, 0.0, u32(features.window))
        highest = feature_logs(features, work)
        for row in range(u32(config.rows)):
            if row == 0:
                feature_row(features, work, highest, window)
            else:
                move(window[row * width :], window, width)
    short = x.dtype == DType.INT16
    bytes: u32 = 4
    if short:
        bytes = 2
    n = x.size // bytes
    at: u32 = 0
    while at < n:
        needed = stream.skip + (feature_span(features) - stream.filled)
        count = min(n - at, needed)
        if count == needed:
            move(window, window[width:], floats - width)
        status, frames = stream_push(features, state, size, x_data[at * bytes :], short, count, latest, 1)
        if status != Status.OK:
            return status
        at += count
    move(view(f32, y_data), window, floats)
    describe(y, DType.FLOAT32, floats * 4, 2, u32(config.rows), width, 0, 0)
    return Status.OK


@fn
def stream_features_check(config: Ptr[u8] | None, config_bytes: u32) -> Status:
    """INVAL if there is no configuration, a field in it is out of its range, or its features need a whole clip."""
    if config is None or config_bytes != STREAM_CONFIG_BYTES:
        return Status.INVAL
    if not is_window(view(StreamConfig, config)):
        return Status.INVAL
    return Status.OK


@fn
def stream_features_capacity(x: Tensor, config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """4 bytes for each number of each row; 0 where there is no telling."""
    if stream_features_check(config, config_bytes) != Status.OK or config is None:
        return 0
    return window_floats(view(StreamConfig, config)) * 4


@fn
def stream_features_state(config: Ptr[u8] | None, config_bytes: u32) -> u32:
    """Bytes of memory from one call to the next; 0 where there is no telling."""
    if stream_features_check(config, config_bytes) != Status.OK or config is None:
        return 0
    c = view(StreamConfig, config)
    return stream_size(c.features) + 4 * window_floats(c)


@fn
def stream_features_stage(call: StageCall) -> Status:
    """NOMEM also where the kernel keeps no state."""
    config = call.config
    state = call.state
    if call.inputs != 1 or config is None or call.config_bytes != STREAM_CONFIG_BYTES:
        return Status.INVAL
    if state is None:
        if not is_window(view(StreamConfig, config)):
            return Status.INVAL
        return Status.NOMEM
    return stream_features(call.x[0], call.x_data[0], call.y, call.y_data, view(StreamConfig, config), state, call.state_bytes)
