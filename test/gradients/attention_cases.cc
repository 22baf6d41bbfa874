#include <fmt/format.h>

#include <algorithm>

#include "test/gradients/graph_text.h"

namespace mlir::ft::test {
namespace {

struct Heads {
  int64_t batch, positions, heads, kvHeads, size;
};

std::string nameOf(const std::string& form) {
  std::string name = form.empty() ? "" : "_" + form;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

// What is said of keys and probabilities. Lengths, from 0 to more than there are positions, are the tokens of
// the graph, ids of segments its targets.
struct Options {
  bool lengths = false, segments = false, dropout = false;

  std::string name() const {
    return std::string(lengths ? "_lengths" : "") + (segments ? "_segments" : "") +
           (dropout ? "_dropout" : "");
  }
  std::string before() const { return dropout ? "  %rng = ft.input \"rng\" : tensor<3xi64>\n" : ""; }
  std::string text() const {
    return std::string(lengths ? "lengths %tokens " : "") + (segments ? "segments %targets " : "") +
           (dropout ? "dropout 0.3 rng %rng stream 4 " : "");
  }
  std::string types(const Heads& s) const {
    return (lengths ? ", " + tensorType({s.batch}, "i32") : "") +
           (segments ? ", " + tensorType({s.batch, s.positions}, "i32") : "") +
           (dropout ? ", tensor<3xi64>" : "");
  }
};

// `form` is what is said of the scores: "causal window 3".
GraphCase attentionCase(const Heads& s, const std::string& form, const Options& options = {}) {
  Dims q = {s.batch, s.positions, s.heads * s.size}, kv = {s.batch, s.positions, s.kvHeads * s.size};
  return {
      fmt::format("attention_{}x{}_heads_{}_{}_size_{}{}{}", s.batch, s.positions, s.heads, s.kvHeads, s.size,
                  nameOf(form), options.name()),
      {{"q", q}, {"k", kv}, {"v", kv}},
      options.before() +
          fmt::format(
              "  %r, %lse = ft.attention %q, %k, %v {}heads {} kv_heads {} {} : ({}, {}, {}{}) -> ({}, {})",
              options.text(), s.heads, s.kvHeads, form, tensorType(q), tensorType(kv), tensorType(kv),
              options.types(s), tensorType(q), tensorType({s.batch, s.heads, s.positions})),
      q,
      {s.batch},
      s.positions + 2};
}

GraphCase qkvCase(const Heads& s, const std::string& form, const Options& options = {}) {
  Dims qkv = {s.batch, s.positions, (s.heads + 2 * s.kvHeads) * s.size},
       out = {s.batch, s.positions, s.heads * s.size};
  return {fmt::format("qkv_attention_{}x{}_heads_{}_{}_size_{}{}{}", s.batch, s.positions, s.heads, s.kvHeads,
                      s.size, nameOf(form), options.name()),
          {{"x", qkv}},
          options.before() +
              fmt::format("  %r, %lse = ft.qkv_attention %x {}heads {} kv_heads {} {} : ({}{}) -> ({}, {})",
                          options.text(), s.heads, s.kvHeads, form, tensorType(qkv), options.types(s),
                          tensorType(out), tensorType({s.batch, s.heads, s.positions})),
          out,
          {s.batch},
          s.positions + 2};
}

GraphCase ropeCase(const Heads& s, double base, bool inverse) {
  Dims dims = {s.batch, s.positions, s.heads * s.size};
  return {fmt::format("rope_{}x{}_heads_{}_size_{}_base_{}{}", s.batch, s.positions, s.heads, s.size, base,
                      inverse ? "_inverse" : ""),
          {{"x", dims}},
          fmt::format("  %r = ft.rope %x heads {} base {:.1f} {} : {}", s.heads, base,
                      inverse ? "inverse" : "", tensorType(dims)),
          dims};
}

// By cosines and sines of one's own, which have gradients, too; of all positions, or of each sequence.
GraphCase rotateCase(const Heads& s, bool ofEach, bool inverse) {
  Dims dims = {s.batch, s.positions, s.heads * s.size}, angles = {s.positions, s.size / 2};
  if (ofEach) angles.insert(angles.begin(), s.batch);
  return {fmt::format("rotate_{}x{}_heads_{}_size_{}{}{}", s.batch, s.positions, s.heads, s.size,
                      ofEach ? "_of_each" : "", inverse ? "_inverse" : ""),
          {{"x", dims}, {"c", angles}, {"s", angles}},
          fmt::format("  %r = ft.rotate %x by %c, %s heads {} {} : {}, {}", s.heads, inverse ? "inverse" : "",
                      tensorType(dims), tensorType(angles)),
          dims};
}

}  // namespace

std::vector<GraphCase> attentionCases() {
  std::vector<GraphCase> cases;
  for (bool flag : {false, true}) {
    const std::string causal = flag ? "causal" : "", more = flag ? "causal " : "";
    // One position; shared kv heads; odd sizes; more positions than a tile of a kernel would hold.
    for (const Heads& heads : {Heads{1, 1, 1, 1, 2}, Heads{2, 5, 4, 2, 6}, Heads{1, 7, 3, 1, 5},
                               Heads{1, 13, 2, 2, 8}, Heads{1, 71, 1, 1, 3}})
      cases.insert(cases.end(), {attentionCase(heads, causal), qkvCase(heads, causal)});
    for (const char* form :
         {"window 3", "scale 0.7", "softcap 0.8", "alibi", "window 2 scale 1.5 softcap 0.5 alibi"})
      for (const Heads& heads : {Heads{2, 5, 4, 2, 6}, Heads{1, 9, 6, 3, 3}})
        cases.insert(cases.end(), {attentionCase(heads, more + form), qkvCase(heads, more + form)});
    for (unsigned option = 1; option < 8; ++option) {
      const Options options = {(option & 1) != 0, (option & 2) != 0, (option & 4) != 0};
      const Heads some = {5, 7, 4, 2, 2};
      cases.insert(cases.end(), {attentionCase(some, causal, options), qkvCase(some, causal, options)});
      cases.push_back(attentionCase({4, 9, 2, 1, 2}, more + "window 4 scale 1.5 softcap 0.5 alibi", options));
    }
    for (const Heads& heads : {Heads{1, 1, 1, 0, 2}, Heads{2, 5, 3, 0, 6}, Heads{1, 9, 1, 0, 10}})
      for (double base : {10.0, 1.0e4}) cases.push_back(ropeCase(heads, base, flag));
    for (bool ofEach : {false, true}) cases.push_back(rotateCase({2, 5, 3, 0, 6}, ofEach, flag));
  }
  // One value as query, key and value.
  cases.push_back({"self_attention",
                   {{"x", {2, 5, 4}}},
                   "  %r, %lse = ft.attention %x, %x, %x heads 2 kv_heads 2 causal : (tensor<2x5x4xf32>, "
                   "tensor<2x5x4xf32>, "
                   "tensor<2x5x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x2x5xf32>)",
                   {2, 5, 4}});
  return cases;
}

}  // namespace mlir::ft::test
