"""Plans as bytes: their hash, and protobuf's wire format, to forge what no compiler writes."""

import struct

HEADER_BYTES = 32
WORD = 2**64 - 1


def plan_hash(payload):
    """PlanHash of runtime/plan/plan_file.h."""
    value = 0xCBF29CE484222325
    for byte in payload:
        value = (value ^ byte) * 0x100000001B3 & WORD
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & WORD
    return value ^ value >> 33


def with_payload(plan, payload):
    """The plan's bytes with another payload, its length and hash right."""
    return plan[:16] + struct.pack("<QQ", len(payload), plan_hash(payload)) + bytes(payload)


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def fields(message):
    """(number, wire type, value) in order: an int for varints, bytes for the others."""
    at, found = 0, []

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = read()
        kind = key & 7
        if kind == 0:
            found.append((key >> 3, kind, read()))
            continue
        length = {1: 8, 2: None, 5: 4}[kind] or read()
        found.append((key >> 3, kind, message[at:at + length]))
        at += length
    return found


def encode(message_fields):
    out = bytearray()
    for number, kind, value in message_fields:
        out += varint(number << 3 | kind)
        if kind == 0:
            out += varint(value)
        elif kind == 2:
            out += varint(len(value)) + value
        else:
            out += value
    return bytes(out)


# Numbers of plan.proto.
PROGRAM, INSTRUCTION, ATTRIBUTE = 15, 2, 8
KERNEL, NAME, INTEGER = 4, 1, 2


def edit_attributes(payload, edit):
    """edit(kernel, attribute, value) for every integer attribute of an instruction; gives the new value."""

    def of_attribute(kernel, attribute):
        parts = fields(attribute)
        name = b"".join(v for n, _, v in parts if n == NAME).decode()
        signed = lambda z: z >> 1 ^ -(z & 1)
        zigzag = lambda v: (v << 1 ^ v >> 63) & WORD
        return encode([(n, k, zigzag(edit(kernel, name, signed(v)))) if n == INTEGER else (n, k, v) for n, k, v in parts])

    def of_instruction(instruction):
        parts = fields(instruction)
        kernel = b"".join(v for n, _, v in parts if n == KERNEL).decode()
        return encode([(n, k, of_attribute(kernel, v)) if n == ATTRIBUTE else (n, k, v) for n, k, v in parts])

    def of_program(program):
        return encode([(n, k, of_instruction(v)) if n == INSTRUCTION else (n, k, v) for n, k, v in fields(program)])

    return encode([(n, k, of_program(v)) if n == PROGRAM else (n, k, v) for n, k, v in fields(payload)])


def integer_attributes(payload):
    """(kernel, attribute) of all integer attributes."""
    found = set()

    def note(kernel, attribute, value):
        found.add((kernel, attribute))
        return value

    edit_attributes(payload, note)
    return sorted(found)
