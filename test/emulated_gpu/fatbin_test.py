"""tools/gpu/fatbin.py: of a shared library's device code that of one architecture is left, where it was, and nothing else changes."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, str(harness.SOURCE / "tools" / "gpu"))
import fatbin

MACHINE_CODE, PTX = 2, 1


def entry(kind, architecture, code):
    """Of 64 bytes and its code, as NVIDIA's tools write it."""
    code = code.ljust(-(-len(code) // 8) * 8, b"\0")
    head = struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(code), len(code), 64, 0, 1, architecture)
    return head.ljust(64, b"\0") + code


def binary(*entries):
    code = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(code)) + code


def elf(**sections):
    """An ELF file with nothing but these sections (name of Python -> bytes)."""
    names, strings, body, table = [".shstrtab", *(name.replace("__DOT__", ".") for name in sections)], b"\0", b"", bytes(64)
    contents = [None, *sections.values()]
    offsets = []
    for name in names:
        offsets.append(len(strings))
        strings += name.encode() + b"\0"
    contents[0] = strings.ljust(-(-len(strings) // 8) * 8, b"\0")
    for name, content in zip(offsets, contents):
        table += struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, 64 + len(body), len(content), 0, 0, 8, 0)
        body += content
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64,
                                                              len(contents) + 1, 1)
    return bytearray(head + body + table)


def device_code(image, name):
    """[(kind, architecture, code)] of each fat binary, walked by what the headers say."""
    begin, size = fatbin.sections(image)[name]
    found, place = [], begin
    while (place := image.find(struct.pack("<IH", 0xBA55ED50, 1), place, begin + size)) >= 0:
        _, _, header, length = struct.unpack_from("<IHHQ", image, place)
        at, entries = place + header, []
        while at < place + header + length:
            kind, _, head, count = struct.unpack_from("<HHIQ", image, at)
            entries.append((kind, struct.unpack_from("<I", image, at + 28)[0], bytes(image[at + head:at + head + count])))
            at += head + count
        assert at == place + header + length
        found.append(entries)
        place = at
    return found


class Fatbin(unittest.TestCase):
    def library(self):
        old, hopper, ptx, newer = (entry(MACHINE_CODE, 80, b"old" * 99), entry(MACHINE_CODE, 90, b"hopper" * 50),
                                   entry(PTX, 120, b"ptx" * 10), entry(MACHINE_CODE, 100, b"newer" * 20))
        return elf(__DOT__text=b"code of the host",
                   __DOT__nv_fatbin=binary(old, hopper, newer, ptx) + binary(newer) + binary(hopper),
                   __nv_relfatbin=binary(ptx, old, hopper))

    def test_what_fits_is_left(self):
        image, before = self.library(), self.library()
        fatbin.prune(image, "90a")
        linked, whole = device_code(image, ".nv_fatbin"), device_code(before, ".nv_fatbin")
        self.assertEqual(linked, [[whole[0][1]], whole[1], whole[2]])  # what has no code for the GPU stays as it was
        self.assertEqual([found[0][1] for found in device_code(image, "__nv_relfatbin")], [90])
        self.assertEqual(len(image), len(before))
        (at, size), place = fatbin.sections(image)[".text"], fatbin.sections(before)[".text"]
        self.assertEqual((at, size), place)
        self.assertEqual(image[at:at + size].rstrip(b"\0"), b"code of the host")

    def test_an_older_minor_version_runs_another_major_does_not(self):
        image = self.library()
        fatbin.prune(image, "86")
        self.assertEqual([found[1] for found in device_code(image, ".nv_fatbin")[0]], [80])
        image, before = self.library(), self.library()
        with self.assertRaisesRegex(fatbin.Unreadable, "no machine code for sm_75"):
            fatbin.prune(image, "75")
        self.assertEqual(device_code(image, ".nv_fatbin"), device_code(before, ".nv_fatbin"))

    def test_what_is_damaged_is_refused(self):
        for damage in (lambda image, at: struct.pack_into("<Q", image, at + 8, 1 << 40),  # a fat binary's length
                       lambda image, at: struct.pack_into("<Q", image, at + 24, 1 << 40),  # an entry's
                       lambda image, at: struct.pack_into("<I", image, at + 20, 0)):  # that of an entry's header
            image = self.library()
            damage(image, fatbin.sections(image)[".nv_fatbin"][0])
            with self.assertRaises(fatbin.Unreadable):
                fatbin.prune(image, "90")
        for image in (bytearray(b"no library"), elf(__DOT__text=b"host's ")):
            with self.assertRaises(fatbin.Unreadable):
                fatbin.prune(image, "90")

    def test_a_program_of_ours_still_starts(self):
        program = pathlib.Path(os.environ["FT_EMULATED"]).with_name("ft_cudart_driver_test")
        if not program.exists():
            self.skipTest("skipped: built without nvcc")
        image = bytearray(program.read_bytes())
        if ".nv_fatbin" not in fatbin.sections(image):
            self.skipTest("skipped: built without nvcc")
        fatbin.prune(image, "90")
        self.assertTrue(all(code[1] == 90 for found in device_code(image, ".nv_fatbin") for code in found))
        with tempfile.TemporaryDirectory() as folder:
            pruned = pathlib.Path(folder) / "pruned"
            pruned.write_bytes(image)
            pruned.chmod(0o755)
            listed = [subprocess.run([path, "--gtest_list_tests"], capture_output=True, check=True).stdout for path in (program, pruned)]
        self.assertEqual(*listed)


if __name__ == "__main__":
    unittest.main()
