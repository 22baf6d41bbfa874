"""The rows of a check, those of runs before it among them, on the terminal and in a file: whatever ends it, what was found is there."""
import json
import os
import time

import standing
from part import ALL_OF_IT
from runner import DONE

RESULTS = ("passed", "FAILED", "skipped", "no time", "not tried")
STANDING = "standing"  # part of the rows that say where a model stands; made anew from the others by every run


def read(path):
    """What --resume names, or (None, why there is nothing to go on from)."""
    try:
        found = json.loads(path.read_text())
        for row in found["rows"]:
            if not all(isinstance(row[key], str) for key in ("part", "what", "result", "detail")):
                raise ValueError("a row of it is none")
        if not isinstance(found["runs"], list) or not all(isinstance(part, str) for part in found["complete"]):
            raise ValueError("it has no runs")
        return found, ""
    except OSError as error:
        return None, error.strerror
    except (ValueError, KeyError, TypeError) as error:
        return None, f"it is no file of a check ({error})"


class Report:
    """rows by (part, what), in the order in which they were first tried."""

    def __init__(self, path, found, arguments, before=None):
        self.path, self.begin, self.number, self.seen = path, time.monotonic(), 0, set()
        self.rows, self.complete, self.runs, self.gone = {}, set(), [], []
        if before:
            self.go_on_from(before, found)
        self.runs.append({"machine": found, "arguments": arguments, "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                          "seconds": 0, "finished": False})
        self.number = len(self.runs) - 1
        self.earlier = {key: row for key, row in self.rows.items() if row["result"] in DONE}
        self.write()

    def go_on_from(self, before, found):
        """On another GPU nothing of it is done: figures would be compared that must not be."""
        same = [gpu["name"] for gpu in before["machine"]["gpus"]] == [gpu["name"] for gpu in found["gpus"]]
        rows = [row for row in before["rows"] if row["part"] != STANDING]
        self.runs, self.gone = before["runs"], before.get("gone", [])
        if same:
            self.rows, self.complete = {(row["part"], row["what"]): row for row in rows}, set(before["complete"])
        else:
            self.gone += rows
            print("check: the rows of --resume are of another GPU; everything is tried again", flush=True)

    def all(self, finished):
        counts = {result: sum(row["result"] == result for row in self.rows.values()) for result in RESULTS}
        self.runs[-1].update(seconds=round(time.monotonic() - self.begin, 1), finished=finished)
        return {"machine": self.runs[-1]["machine"], "finished": finished, "counts": counts, "runs": self.runs,
                "complete": sorted(self.complete), "rows": list(self.rows.values()), "gone": self.gone}

    def write(self, finished=False):
        beside = self.path.with_name(self.path.name + ".part")
        beside.write_text(json.dumps(self.all(finished), indent=1) + "\n")
        os.replace(beside, self.path)

    def wanting(self, part):
        """Whether there is something left to try: it did not come to its end, or something failed or had no time."""
        return part.name not in self.complete or any(row["part"] == part.name and row["result"] not in DONE
                                                     for row in self.rows.values())

    def begin_part(self, part):
        self.complete.discard(part.name)
        self.rows.pop((part.name, ALL_OF_IT), None)

    def add(self, part, row):
        key = (part, row["what"])
        self.seen.add(key)
        if self.earlier.get(key) is row:  # of an earlier run, which said it already
            return
        was = self.rows.get(key)
        row = {"part": part, "run": self.number, **row}
        if was and part != STANDING:
            short = {name: was.get(name) for name in ("run", "result", "seconds", "detail")}
            row["before"] = [*was.get("before", []), short]
        self.rows[key] = row
        self.write()
        print(f"{row['result']:9} {part:12} {row['what']:58} {row['seconds']:6.1f} s  {row['detail']}", flush=True)

    def end_part(self, part):
        """Rows that did not come again are of what is no longer so: a test that was tried alone when all of them failed."""
        if (part.name, ALL_OF_IT) in self.rows:  # it broke
            return
        for key in [key for key in self.rows if key[0] == part.name and key not in self.seen]:
            self.gone.append(self.rows.pop(key))
        self.complete.add(part.name)
        self.write()

    def add_standings(self, gpu, names, peers):
        for row in standing.standings(list(self.rows.values()), gpu, names, peers):
            if row["figures"]:
                self.add(STANDING, row)

    def finish(self):
        """Prints the table; returns the exit status."""
        self.write(finished=True)
        for row in self.rows.values():
            if "figures" in row:
                print(standing.text(row))
        for row in self.rows.values():
            if row["result"] == "FAILED":
                print(f"FAILED {row['part']}: {row['what']}: {row['detail']}")
        counts = self.all(True)["counts"]
        summary = ", ".join(f"{count} {result}" for result, count in counts.items())
        print(f"{summary} in {self.runs[-1]['seconds']:.0f} s; figures in {self.path}")
        return 1 if counts["FAILED"] else 3 if counts["no time"] or counts["not tried"] else 0
