"""Few rows of options in which every pair of values of two options occurs."""

import itertools


def pairs_of(row):
    return set(itertools.combinations(row.items(), 2))


def covering_rows(options):
    """Rows {name: value}; each takes, option by option, the value with most pairs still open."""
    names = list(options)
    opened = {
        ((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in options[a] for y in options[b]
    }
    rows = []
    while opened:
        row = dict(min(opened, key=repr))  # begins with a pair that is open, so every row closes one
        for name in names:
            if name in row:
                continue

            def gain(value):
                trial = {**row, name: value}
                return sum(((a, trial[a]), (b, trial[b])) in opened for a, b in itertools.combinations(names, 2)
                           if a in trial and b in trial)

            row[name] = max(options[name], key=gain)
        row = {name: row[name] for name in names}
        opened -= pairs_of(row)
        rows.append(row)
    return rows
