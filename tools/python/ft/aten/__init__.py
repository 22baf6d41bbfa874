"""How ATen ops are said, a module a topic. Each registers its functions in ft.registry."""
from . import activations, arithmetic, attention, convolutions, creation, indexing, losses, norms, ordering, products, random, reductions, scattering, shapes
