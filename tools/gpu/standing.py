"""Where each model stands: its figures of all runs, ours beside PyTorch's, and what falls short of the promise."""
import artifacts
import models


class Standing:
    """Of one model on one GPU."""

    def __init__(self, name, gpu):
        self.name, self.gpu, self.figures, self.rounds = name, gpu, {}, None
        workload = {**artifacts.WORKLOADS, **artifacts.SMALL_WORKLOADS}[name]
        self.tokens = workload["batch"] * workload["seq"]

    def add(self, variant, result):
        before = self.figures.get(variant, {}).get("seconds", [])
        result = {**result, "seconds": before + result["seconds"]}
        self.figures[variant] = {**result, **models.summary(result["seconds"], self.tokens)}

    def peer(self):
        """The fastest that torch.compile gave."""
        compiled = [self.figures[variant] for variant in ("blocks", "compile") if variant in self.figures]
        return max(compiled, key=lambda figures: figures["tokens_per_s"], default=None)

    def ratio(self):
        """Over the fastest peer; where that one was measured in turn with ours, the median of the rounds."""
        if not self.peer():
            return None
        if self.rounds and self.peer() is self.figures.get(self.rounds["variant"]):
            return self.rounds["ratio"]
        return self.figures["ft"]["tokens_per_s"] / self.peer()["tokens_per_s"]

    def row(self, peers):
        """peers: whether there is a PyTorch to compare with."""
        made = {"what": self.name, "result": "skipped", "seconds": 0, "detail": "not measured", "figures": self.figures}
        if "ft" in self.figures:
            short = "; ".join(self.shortcomings())
            compared = bool(self.peer()) or not peers
            made.update(ratio=self.ratio(), floor=models.floor_of(self.name, self.gpu),
                        result="FAILED" if short else "passed" if compared else "skipped",
                        detail=short or ("" if compared else "torch.compile was not measured"))
        return made

    def shortcomings(self):
        """What falls short of the promise, in words."""
        us, peer, floor = self.figures["ft"], self.peer(), models.floor_of(self.name, self.gpu)
        if floor and us["tokens_per_s"] < floor:
            yield f"{floor:,.0f} tokens/s wanted on {self.gpu['name']}"
        if peer and self.ratio() < models.SPEEDUP:
            yield f"{models.SPEEDUP} x torch.compile wanted"
        # When a peer had to recompute whole blocks, it took less memory at the price of time.
        if peer and peer["keep"] != "inputs of blocks" and us["arena_bytes"] >= peer["allocated_bytes"]:
            yield "less memory than torch.compile wanted"
        if us["arena_bytes"] != us["announced_bytes"]:
            yield f"the arena is not what was announced, {us['announced_bytes']} bytes"


def standings(rows, gpu, names, peers):
    """A row for each of these models, from rows with "measured" of parts models and peers, and with "rounds"."""
    made = {name: Standing(name, gpu) for name in names}
    for row in rows:
        name, _, variant = row["what"].partition(": ")
        if "measured" in row and name in made and row["result"] == "passed":
            made[name].add(variant.removesuffix(" again"), row["measured"])
        if "rounds" in row and name in made and row["result"] == "passed":
            made[name].rounds = row
    return [standing.row(peers) for standing in made.values()]


def text(row):
    """The table of a model."""
    lines = []
    for variant, f in row.get("figures", {}).items():
        memory = (f"arena {f['arena_bytes'] / 2**30:.2f} GiB" if variant == "ft" else
                  f"allocated {f['allocated_bytes'] / 2**30:.2f}, reserved {f['reserved_bytes'] / 2**30:.2f} GiB")
        beside = f", {f['device_bytes'] / 2**30:.2f} with context and libraries" if f.get("device_bytes") else ""
        mfu = f", MFU {f['mfu']:.1%}" if f.get("mfu") else ""
        lines.append(f"  {variant:8} {f['tokens_per_s']:>10,.0f} tokens/s {f['step_ms']:>8.1f} ms  loss {f['loss']:.4f}  "
                     f"{memory}{beside}{mfu}; {f['keep']}")
    ratio = f"{row['ratio']:.3f} x torch.compile" if row.get("ratio") else "torch.compile was not measured"
    return "\n".join([f"{row['what']}: {ratio}", *lines])
