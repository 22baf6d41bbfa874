"""Dropout; what else draws random numbers is refused."""
from ..registry import op, refuse


def dropped(graph, x, rate):
    """With a stream of random numbers of its own. Rates of 0 draw nothing."""
    if rate >= 1:
        return graph.scale(x, 0)
    return graph.dropout(x, rate) if rate else x


@op("dropout")
def dropout(graph, x, p=0.5, train=True):
    x = graph.value(x, "f32")
    return dropped(graph, x, p) if train else x


@op("native_dropout")
def native_dropout(graph, x, p, train=True):
    return dropout(graph, x, p, train is not False), None


refuse("torch.distributions look at their arguments, which has no values here; make them with validate_args=False", "_is_all_true _is_any_true")
refuse("random numbers other than dropout's are not taken; draw them outside, as an input", """
    bernoulli bernoulli_ rand rand_like randn randn_like randint randint_like normal normal_functional multinomial uniform exponential cauchy log_normal
    geometric random randperm alpha_dropout feature_dropout feature_alpha_dropout rrelu rrelu_with_noise rrelu_with_noise_functional poisson binomial
""")
