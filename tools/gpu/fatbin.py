"""Leaves in a shared library of NVIDIA's the machine code of one architecture, so that it packs well.

Such a library holds in .nv_fatbin a fat binary for each source file: a header and entries, each with the code for one
architecture, of which the driver takes the one that fits best; __nv_relfatbin holds the same before it was linked. Here the entries
that fit are moved to the front of their fat binary, whose header then says how short it is, as if it had been built for them alone;
what is left over becomes zeros. No address changes.
"""
import re
import struct

LINKED, RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"
MAGIC = 0xBA55ED50
HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of the header, bytes after it
ENTRY = struct.Struct("<HHIQIIHHI")  # kind, version, bytes of the header, bytes after it, ..., architecture at the end
MACHINE_CODE = 2  # kind; PTX is 1


class Unreadable(Exception):
    pass


def sections(image):
    """Offset and size of each section of an ELF file of 64 bits, by name."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise Unreadable("it is no ELF file of 64 bits")
    table, = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    found = [struct.unpack_from("<IIQQQQ", image, table + size * number) for number in range(count)]
    strings = found[names][4]

    def name(offset):
        return bytes(image[strings + offset:image.index(b"\0", strings + offset)]).decode()
    return {name(section[0]): (section[4], section[5]) for section in found}


def fat_binaries(image, begin, size):
    """(offset, first entry's offset, end) of each, which begin at multiples of 8."""
    place, end = begin, begin + size
    while place + HEADER.size <= end:
        magic, _, header, length = HEADER.unpack_from(image, place)
        if magic == MAGIC:
            if header < HEADER.size or place + header + length > end:
                raise Unreadable(f"the fat binary at {place:#x} is longer than its section")
            yield place, place + header, place + header + length
            place += (header + length + 7) & ~7
        else:
            place += 8


def entries(image, begin, end):
    """(offset, bytes, bytes of its header, kind, architecture) of each."""
    place = begin
    while place < end:
        kind, _, header, length, *_, architecture = ENTRY.unpack_from(image, place)
        if header < ENTRY.size or place + header + length > end:
            raise Unreadable(f"the entry at {place:#x} is longer than its fat binary")
        yield place, header + length, header, kind, architecture
        place += header + length


def fitting(found, architecture):
    """Those entries that a GPU of this compute capability may run as they are: of the same major version, the newest that is not
    newer than it; where there is none, all."""
    runs = [entry for entry in found if entry[3] == MACHINE_CODE and entry[4] // 10 == architecture // 10 and entry[4] <= architecture]
    best = max((entry[4] for entry in runs), default=None)
    return [entry for entry in runs if entry[4] == best] or found


def shorten(image, place, begin, end, architecture):
    """Moves the entries that fit to the front; returns where they end."""
    kept = fitting(list(entries(image, begin, end)), architecture)
    code = b"".join(bytes(image[entry:entry + size]) for entry, size, *_ in kept)
    image[begin:end] = code.ljust(end - begin, b"\0")
    image[place + 8:place + 16] = struct.pack("<Q", len(code))
    return begin + len(code)


def prune(image, arch):
    """Changes the library `image`, a bytearray, for `arch` ("90", "90a"). Errors: Unreadable."""
    architecture = int(re.match(r"\d+", arch)[0])
    by_name = sections(image)
    if LINKED not in by_name:
        raise Unreadable("it has no device code")
    shorter = {LINKED: 0, RELOCATABLE: 0}
    for name in shorter:
        for place, begin, end in list(fat_binaries(image, *by_name.get(name, (0, 0)))):
            shorter[name] += shorten(image, place, begin, end, architecture) < end
    if not shorter[LINKED]:
        raise Unreadable(f"it has no machine code for sm_{architecture} beside others")
