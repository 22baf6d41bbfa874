// Values of FSDP, DeepSpeed and Hugging Face, made into our own.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ftc/config/values.h"

namespace ftc {

// What a converter may look at.
struct Reading {
  std::string text;  // of the key itself
  bool is_list = false;
  // Text of another key in the same section of the file, nothing when it is not there.
  std::function<std::optional<std::string>(std::string_view key)> sibling;
  // Text of any key of the file, as the tables have it.
  std::function<std::optional<std::string>(std::string_view key)> elsewhere;
  // What a setting is, flags and file taken together. For late converters alone.
  std::function<std::string(std::string_view setting)> effective;
};

struct Conversion {
  std::optional<std::string> text;  // nothing: the setting is left as it is
  std::string mistake;              // not empty: the value is refused
  std::string remark;               // what the user should know about how the value was understood
};

struct Converter {
  std::function<Conversion(const Reading& reading)> convert;
  std::string doc;    // how values map, for the documentation; empty: as they are
  bool late = false;  // reads Reading::effective, so it runs when the others have
};

// As it is.
Converter SameValue();
// true and false mean these texts; nothing: the setting is left as it is.
Converter FromBool(std::optional<std::string> if_true, std::optional<std::string> if_false);
// By table, words as Plain makes them; an empty right side leaves the setting as it is. A word that is not in
// the table is refused, or with `others` taken as it is.
Converter FromWords(Synonyms words, bool others = false);
// An integer; values at most `leave` leave the setting as it is.
Converter IntegerAbove(int64_t leave);
// A number of elements, made into MiB by the size of what the setting `dtype` names.
Converter ElementsToMib(std::string dtype);
// DeepSpeed's stage of ZeRO, as a strategy.
Converter ZeroStage();
// cpu or none: whether this part is offloaded.
Converter OffloadDevice(std::string part);
// A fraction of the learning rate.
Converter FractionOfLr();
// One of the two decays of the moments; the other one is the sibling key's, or as it was.
Converter HalfOfBetas(bool first, std::string other_key);
// "prefix:N"
Converter CountOf(std::string prefix);

// Those for one key each.
Converter ActivationCheckpointingEnabled();
Converter DeepSpeedOptimizer();
Converter MaxLiveParameters();
Converter WorldSizeOfProcesses();
// WarmupLR, WarmupDecayLR and WarmupCosineLR, in this order, are these.
Converter DeepSpeedScheduler(std::array<std::string, 3> words);
// A parameter of the schedulers named, in lower case; refused beside another one.
Converter OfSchedulers(std::vector<std::string> types, Converter converter = SameValue());
// What only one scheduler does with a parameter that others have too.
Converter OnlyOf(std::string type, Converter converter = SameValue());

}  // namespace ftc
