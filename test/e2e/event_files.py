"""Reads TensorBoard's event files with nothing but the standard library: frames, checksums, protobuf's wire format."""

import collections
import struct

Event = collections.namedtuple("Event", "wall_time step file_version session_start scalars texts")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """field number -> values: int, or bytes (of fixed-size numbers, too)"""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at:at + size], at + size
            assert len(value) == size, "a field is torn"
        found[key >> 3].append(value)
    return found


def records(data):
    at = 0
    while at < len(data):
        assert at + 12 <= len(data), "a frame is torn"
        size, check = struct.unpack_from("<QI", data, at)
        assert masked(crc32c(data[at:at + 8])) == check, f"checksum of the length at {at}"
        body = data[at + 12:at + 12 + size]
        assert len(body) == size and at + 16 + size <= len(data), "a record is torn"
        assert masked(crc32c(body)) == struct.unpack_from("<I", data, at + 12 + size)[0], f"checksum of the record at {at}"
        yield body
        at += 16 + size


def event(body):
    top = fields(body)
    step = top[2][0] if top[2] else 0
    scalars, texts = {}, {}
    for value in fields(top[5][0])[1] if top[5] else []:
        value = fields(value)
        tag = value[1][0].decode()
        assert tag not in scalars and tag not in texts, tag
        if value[2]:
            scalars[tag] = struct.unpack("<f", value[2][0])[0]
        else:
            assert fields(fields(value[9][0])[1][0])[1] == [b"text"]
            tensor = fields(value[8][0])
            assert (tensor[1], tensor[2]) == ([7], [b""])  # one string
            texts[tag] = tensor[8][0].decode()
    return Event(struct.unpack("<d", top[1][0])[0], step - (1 << 64) if step >> 63 else step, top[3][0].decode() if top[3] else None,
                 bool(top[7]) and fields(top[7][0])[1] == [1], scalars, texts)


def read(path):
    return [event(body) for body in records(path.read_bytes())]


def paths(folder):
    """In the order in which TensorBoard reads them."""
    return sorted(folder.glob("events.out.tfevents.*"))
