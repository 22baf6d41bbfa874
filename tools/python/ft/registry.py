"""The table of ATen ops: who says which. A module of `ft.aten` fills it with @op("name", ...).

A function of the table takes the graph (interpreter.Graph) and the op's arguments: tensors that inputs reach are Values, others torch.Tensors
(graph.value makes a Value of either), numbers and lists as they are. It returns a Value, or a tuple of them.
"""
TABLE = {}
REFUSED = {}


def op(*names):
    """Registers a function for ops by name, "add" for all overloads or "add.Tensor" for one."""
    def register(function):
        for name in names:
            assert name not in TABLE, name
            TABLE[name] = function
        return function
    return register


def refuse(advice, names):
    """Ops that are not taken, their names with spaces between, and what to do instead."""
    REFUSED.update(dict.fromkeys(names.split(), advice))


def find(target):
    """(name, function, advice) of an OpOverload; name as `aten.add.Tensor`."""
    name = str(target)
    parts = name.split(".")
    full, short = ".".join(parts[1:]), parts[1] if len(parts) > 1 else name
    function = TABLE.get(full) or TABLE.get(short)
    advice = REFUSED.get(full) or REFUSED.get(short)
    return name, function, advice
