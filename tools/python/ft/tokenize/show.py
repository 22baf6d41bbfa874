"""Prints documents of a container as text, with what counts for the loss marked."""
import numpy as np

MOST = 2000  # characters of a document


def runs_of(counts):
    """(begin, end, counts or not) of runs of equal values."""
    bounds = np.flatnonzero(np.diff(counts)) + 1
    edges = [0, *map(int, bounds), len(counts)]
    return [(a, b, bool(counts[a])) for a, b in zip(edges, edges[1:])]


def text_of(data, begin, end):
    """Text of tokens; ids where there is no vocabulary. Control characters are escaped, but for line ends and tabs."""
    raw = data.text(begin, end)
    if raw is None:
        return " ".join(map(str, data.tokens[begin:end])) + " "
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in raw.decode(errors="replace"))


def shown(data, index):
    """Lines of a document: "+ " before what counts, "  " before what does not."""
    begin, end = int(data.documents[index]), int(data.documents[index + 1])
    counts = data.counts(begin, end)
    others = "".join(f", {name} {array[index].tolist()}" for name, array in data.inputs.items())
    lines, left = [f"document {index}: {end - begin} tokens, {int(counts.sum())} count{others}"], MOST
    for a, b, counted in runs_of(counts):
        text = text_of(data, begin + a, begin + min(b, a + MOST))
        text = text[1:] if a and text.startswith("\n") else text  # the line of the run before has ended
        if not text:
            continue
        lines += [("  + " if counted else "    ") + line for line in text[:left].removesuffix("\n").split("\n")]
        left -= len(text)
        if left <= 0:
            lines.append("    ...")
            break
    return lines


def show(data, count, output):
    for index in range(min(count, len(data.documents) - 1)):
        output.write("\n".join(shown(data, index)) + "\n")
