"""Which machine file a row's is, and what in the row speaks against it."""

import fnmatch
import pathlib
import re

import machine_files
import rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = ROOT / "runtime/targets/validation"
COMPILE = ((r"no|none|off|false|eager", "no"), (r"yes|on|true|inductor|torch\.compile", "yes"))
INFINIBAND = {"edr": 100, "hdr100": 100, "hdr": 200, "ndr200": 200, "ndr": 400, "ndr400": 400, "xdr": 800}  # Gb/s of a port


def columns(row):
    """What machine files have patterns of. Variants of a GPU may stand in the note."""
    compiled = rows.stated(row, "compile")
    return {"framework": rows.stated(row, "framework"), "gpu": f"{rows.stated(row, 'gpu')} {rows.stated(row, 'gpu_note')}".strip(),
            "gpu_note": rows.stated(row, "gpu_note"),
            "compile": next((meaning for pattern, meaning in COMPILE if re.fullmatch(pattern, compiled)), compiled)}


def gpu_against(row, machine):
    """A board, a memory or a limit of power that the row states and the machine has not."""
    text = columns(row)["gpu"]
    board = re.search(r"(?<![a-z])(pci-?e|nvl|cnx|mig)(?![a-z])", text)
    if board:
        return board[1]
    capacity = float(machine_files.get(machine, "memory.capacity_mib", 0)) / 1024
    for size in re.findall(r"(\d+(?:\.\d+)?) ?gi?b?(?![a-z/])", text):
        if capacity and abs(float(size) / capacity - 1) > 0.08:  # data sheets count GB, and some of them what the device keeps
            return f"{size} GB"
    watts = machine_files.get(machine, "assumptions.watts")
    return next((f"{power} W" for power in re.findall(r"(\d+) ?w(?:atts?)?(?![a-z])", text) if watts and power != watts), None)


def rate_per_gpu(text, ranks):
    """Gb/s that "8x400Gb IB", "1600Gbps RoCE per node" or "NDR" say of links between nodes; None where nothing is said."""
    rates = re.findall(r"(?:(\d+) ?[x×] ?)?(\d+) ?[Gg](?:b[Ee]|bit|bps|b)?(?![A-Za-z])", text)
    if len(rates) == 1:
        count, rate = rates[0]
        if re.search(r"(per|/) ?(gpu|rank)", text, re.IGNORECASE):
            return float(rate)
        if count or re.search(r"(per|/) ?node", text, re.IGNORECASE):
            return int(count or 1) * float(rate) / ranks
    if rates or re.search(r"ethernet|\befa\b|\btcp\b", text, re.IGNORECASE):
        return 0.0  # said, but not how fast for each
    named = re.search(rf"(?:(\d+) ?[x×] ?|\b)({'|'.join(INFINIBAND)})(?![a-z0-9])", text, re.IGNORECASE)
    return named and INFINIBAND[named[2].lower()] * (int(named[1]) / ranks if named[1] else 1.0)


def links_against(row, machine):
    text, ranks, world = row.get("interconnect") or "", rows.ranks_on_node(row, machine), rows.number(row, "n_gpus")
    lower = text.lower()
    slow = re.search(r"(no|without) nvlink|bridge|pairs", lower) or (re.search(r"pci-?e", lower) and "nvlink" not in lower)
    if slow and min(ranks, world) > 1:
        return True
    rate = rate_per_gpu(text, ranks) if world > ranks else None
    reached = 8 * float(machine_files.get(machine, "links.network.gigabytes_per_s", 0))
    return rate is not None and not 0.7 * rate <= reached <= rate  # of a link's bits 80 to 95% are data


class Machines:
    """The machine files of a folder. A row's is that whose patterns of its columns fit, the longest, if nothing speaks against it."""

    def __init__(self, folder):
        self.files = [(path, machine_files.read(path)) for path in sorted(pathlib.Path(folder).glob("*.yaml"))]
        for path, machine in self.files:
            if not machine_files.get(machine, "ranks_per_node", "").isdigit():
                raise machine_files.BadFile(f"{path}: no ranks_per_node")

    def of(self, row):
        best, longest, said = None, -1, columns(row)
        for path, machine in self.files:
            patterns = {column: machine_files.get(machine, f"assumptions.{column}", "*").lower() for column in said}
            literal = sum(len(re.sub(r"[*?]", "", pattern)) for pattern in patterns.values())
            if literal > longest and all(fnmatch.fnmatchcase(said[column], pattern) for column, pattern in patterns.items()):
                best, longest = (path, machine), literal
        if best is None:
            raise rows.NotExpressed(f"no machine file for {rows.stack(row)}, gpu_note '{row.get('gpu_note') or ''}', "
                                    f"compile '{row.get('compile') or ''}'")
        against = gpu_against(row, best[1])
        if against:
            raise rows.NotExpressed(f"no machine file for {rows.stack(row)}, {against}")
        if links_against(row, best[1]):
            raise rows.NotExpressed(f"interconnect '{row['interconnect']}' is not that of {best[0].name}")
        return best
