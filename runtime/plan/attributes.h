// Attributes of a plan by name.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string_view>

#include "runtime/plan/plan.pb.h"

namespace ft {

// The first one of that name; null when there is none.
inline const proto::Attribute* FindAttribute(
    const google::protobuf::RepeatedPtrField<proto::Attribute>& attributes, std::string_view name) {
  for (const proto::Attribute& attribute : attributes) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

}  // namespace ft
