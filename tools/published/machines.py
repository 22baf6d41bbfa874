"""Which machine file a row's is, and what in the row speaks against it."""

import fnmatch
import pathlib
import re

import machine_files
import rows
import words

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = ROOT / "runtime/targets/validation"
INFINIBAND = {"edr": 100, "hdr100": 100, "hdr200": 200, "hdr": 200, "ndr200": 200, "ndr400": 400, "ndr": 400, "xdr": 800}  # Gb/s of a port
SEVERAL = {"single": 1, "one": 1, "dual": 2, "two": 2, "quad": 4, "four": 4, "eight": 8}
ADAPTER = r"(?:nics?|ports?|adapters?|hcas?|rails?|connectx|cx-?\d)\b"
ADAPTERS = rf"\b(\d+|{'|'.join(SEVERAL)}) ?[x×]?[ -]?(?:(?:ib|infiniband|roce|ndr|hdr) )?{ADAPTER}( ?(?:per|/) ?(?:gpu|rank))?"
NETWORK = r"\b(nics?|ib|infiniband|roce|efa|network|between nodes|inter-?node|[hnx]dr)\b"
RATE = (rf"(?:(?<![\w.])(\d+)(?: ?[x×*] ?| (?=\d+ ?G\S* (?i:{ADAPTER})))|(?<![\w.]))(\d+(?:\.\d+)?)[ -]?"
        r"([GgT](?:b[Ee]|bits?(?:/s)?|bps|b/s|b|B/s|Bps)?)(?![A-Za-z/])(?:(?i: ib| infiniband| roce| nics?)? ?[x×*] ?(\d+)\b)?")
OTHER_MEMORY = r"(host|cpu|system|sys|main|dram|ddr\d?|ram|disk|nvme|ssd|peak|used|shm)"
LARGEST_MEMORY = 300  # GB of a GPU


def columns(row):
    """What machine files have patterns of. Variants of a GPU may stand in the note."""
    note = re.sub(r"\b(\d{3,4}) ?w(atts?)?\b(?!/)", r"\1 w", rows.stated(row, "gpu_note"))
    gpu = re.sub(r"^(\d+ ?[x×] ?)?((nvidia|hgx|dgx)[ -]*)*", "", rows.stated(row, "gpu"))
    return {"framework": rows.stated(row, "framework"), "gpu": f"{gpu} {note}".strip(), "gpu_note": note,
            "compile": words.compiled(rows.stated(row, "compile"))}


def memories(row):
    """GB of the GPU's memory that the row states: not Gb of links, GB/s, or what a host has."""
    note = row.get("gpu_note") or ""
    for text, unit in (row.get("gpu") or "", r"[Gg](?:i?[Bb])?"), (note, r"(?:G[iI]?B|gi?b)"):
        for size in re.finditer(rf"(?<![\d.])(\d+(?:\.\d+)?) ?-?{unit}(?![A-Za-z/])", text):
            before, after = text[:size.start()].lower(), text[size.end():].lower()
            if not (re.search(rf"\b{OTHER_MEMORY}( memory)?[ :=]*(of )?$", before) or float(size[1]) > LARGEST_MEMORY
                    or re.match(rf" ?(of )?({OTHER_MEMORY}|ib|infiniband|roce|ethernet|efa|nics?|[hn]dr|per (s|node))\b", after)):
                yield float(size[1])


def gpu_against(row, machine):
    """A board, a memory or a limit of power that the row states and the machine has not."""
    text = columns(row)["gpu"]
    board = re.search(r"(?<![a-z])(pci-?e|nvl|cnx|mig)(?![a-z])", text)
    if board:
        return board[1]
    capacity = float(machine_files.get(machine, "memory.capacity_mib", 0)) / 1024
    for size in memories(row):
        if capacity and abs(size / capacity - 1) > 0.08:  # data sheets count GB, and some of them what the device keeps
            return f"{size:g} GB"
    watts = machine_files.get(machine, "assumptions.watts")
    return next((f"{power} W" for power in re.findall(r"\b(\d{3,4}) ?w(?:atts?)?\b(?!/)", text) if watts and power != watts), None)


def _network_rates(text):
    """(count or "", Gb/s) of each rate that the text has; GB/s count where they are called a network's."""
    for clause in re.split(r"[;,+]", text):
        network = re.search(NETWORK, clause, re.IGNORECASE) and "nvl" not in clause.lower()
        for before, rate, unit, after in re.findall(RATE, clause):
            if "B" not in unit or network:
                yield before or after, float(rate) * (8 if "B" in unit else 1) * (1000 if unit[0] == "T" else 1)


def rate_per_gpu(text, ranks):
    """Gb/s that "8x400Gb IB", "1600Gbps RoCE per node" or "NDR" say of links between nodes; None where nothing is said."""
    rates, lower = list(_network_rates(text)), text.lower()
    named = re.search(rf"(?:(\d+) ?[x×] ?|\b)({'|'.join(INFINIBAND)})(?![a-z0-9])(?: ?[x×] ?(\d+)\b)?", lower)
    adapters = re.search(ADAPTERS, lower)
    count = next((count for count, _ in rates if count), "") or (adapters and adapters[1]) or (named and (named[1] or named[3])) or 0
    count = SEVERAL.get(count) or int(count)
    if len(rates) == 2:
        low, high = sorted(rate for _, rate in rates)
        if high in (count * low, ranks * low):  # of a port, and of all of a node
            rates, count = [("", low)], round(high / low)
    if len(rates) > 1 or (not rates and not named and re.search(r"ethernet|\befa|\btcp\b", lower)):
        return 0.0  # said, but not how fast for each
    if not rates and not named:
        return None
    port = INFINIBAND[named[2]] if named else None
    rate = rates[0][1] if rates else port
    if adapters and adapters[2]:
        return count * rate
    if re.search(r"(per|/) ?(gpu|rank)", lower):
        return rate
    if rate > max(INFINIBAND.values()) or (re.search(r"(per|/) ?node", lower) and not count):
        return rate / ranks
    return count * rate / ranks if count else rate if rate == port else 0.0


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
