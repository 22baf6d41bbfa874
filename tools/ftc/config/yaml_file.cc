#include "tools/ftc/config/yaml_file.h"

#include <map>
#include <sstream>

#include "fmt/format.h"
#include "runtime/base/printable.h"
#include "yaml-cpp/depthguard.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/mark.h"
#include "yaml-cpp/parser.h"

namespace ftc {
namespace {

using Kind = YamlNode::Kind;
using NodePointer = std::shared_ptr<YamlNode>;

constexpr size_t kDeepest = 100;

// Leaves the parser; never leaves this file.
struct Refused {
  YAML::Mark mark;
  std::string message;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  std::shared_ptr<const YamlNode> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refused{mark, "a second document; one is read"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    NodePointer node = Make(Kind::kNull, mark);
    Add(node, mark);
    Name(anchor, node);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{mark, "an alias within its own anchor"};
    Add(found->second, mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckTag(mark, tag);
    NodePointer node = Make(Kind::kScalar, mark);
    node->text = value;
    // "?" is the tag of what is written plainly.
    if (tag == "?" &&
        (value == "null" || value == "Null" || value == "NULL" || value == "~" || value.empty()))
      node->kind = Kind::kNull;
    Add(node, mark);
    Name(anchor, node);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    NodePointer node;
    YAML::anchor_t anchor;
    std::shared_ptr<const YamlNode> key;  // maps: read, its value not yet
  };

  static NodePointer Make(Kind kind, const YAML::Mark& mark) {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->line = mark.line + 1;
    node->column = mark.column + 1;
    return node;
  }

  static void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    for (const char* known : {"", "?", "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:int",
                              "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null",
                              "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}) {
      if (tag == known) return;
    }
    throw Refused{mark, fmt::format("the tag {} has no meaning here", tag)};
  }

  void Open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    CheckTag(mark, tag);
    if (open_.size() >= kDeepest) throw Refused{mark, fmt::format("nested deeper than {}", kDeepest)};
    open_.push_back({Make(kind, mark), anchor, nullptr});
  }

  // Added to its parent only now, so that no node can contain itself.
  void Close() {
    const Level level = open_.back();
    open_.pop_back();
    Add(level.node, {});
    Name(level.anchor, level.node);
  }

  void Name(YAML::anchor_t anchor, const NodePointer& node) {
    if (anchor != 0) anchors_[anchor] = node;
  }

  void Add(const std::shared_ptr<const YamlNode>& node, const YAML::Mark& mark) {
    if (open_.empty()) {
      root_ = node;
    } else if (Level& level = open_.back(); level.node->kind == Kind::kList) {
      level.node->items.emplace_back(nullptr, node);
    } else if (level.key == nullptr) {
      if (node->kind != Kind::kScalar) throw Refused{mark, "a key that is no word"};
      level.key = node;
    } else {
      level.node->items.emplace_back(std::move(level.key), node);
      level.key = nullptr;
    }
  }

  int documents_ = 0;
  std::shared_ptr<const YamlNode> root_ = Make(Kind::kMap, YAML::Mark());
  std::vector<Level> open_;
  std::map<YAML::anchor_t, NodePointer> anchors_;
};

absl::Status CheckText(std::string_view text, const std::string& name) {
  int line = 1;
  for (size_t i = 0; i < text.size();) {
    const size_t length = ft::Utf8SequenceLength(text.substr(i));
    if (length == 0 || text[i] == '\0')
      return absl::InvalidArgumentError(fmt::format("{}:{}: byte 0x{:02x} is not UTF-8 text", name, line,
                                                    static_cast<unsigned char>(text[i])));
    line += text[i] == '\n';
    i += length;
  }
  return absl::OkStatus();
}

absl::Status At(const std::string& name, const YAML::Mark& mark, const std::string& message) {
  const int line = mark.is_null() ? 1 : mark.line + 1, column = mark.is_null() ? 1 : mark.column + 1;
  return absl::InvalidArgumentError(fmt::format("{}:{}:{}: {}", name, line, column, message));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const YamlNode>> ParseYaml(std::string_view text, const std::string& name) {
  if (absl::Status status = CheckText(text, name); !status.ok()) return status;
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return At(name, refused.mark, refused.message);
  } catch (const YAML::DeepRecursion& error) {
    return At(name, error.mark, fmt::format("nested deeper than {}", kDeepest));
  } catch (const YAML::Exception& error) {
    return At(name, error.mark, "not YAML: " + error.msg);
  }
  return builder.root();
}

}  // namespace ftc
