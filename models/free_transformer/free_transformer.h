// The Free Transformer (F. Fleuret, "The Free Transformer", 2025): a decoder with a latent variable per
// position, trained as a conditional variational autoencoder; and the baseline, the same decoder without it.
#pragma once

#include "models/base/model_spec.h"

namespace ft::models {

ModelSpec freeTransformerSpec();
ModelSpec baselineSpec();

} // namespace ft::models
