#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cls_zlog/wire/frame.h"

// A visitor that describes messages as types: their names and their fields.
namespace zlog::describe {

// A type's name, without its namespace.
template <typename T>
std::string name_of() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const size_t begin = text.find("T = ") + 4;
  const std::string_view full = text.substr(begin, text.find_first_of(";]", begin) - begin);
  return std::string(full.substr(full.rfind(':') + 1));
}

struct Field {
  std::string name;
  std::string type;
  std::string element;  // of a list, a column, an enumeration: its type
  wire::Bounds bounds;
};

using Structs = std::map<std::string, std::vector<Field>>;

template <typename T>
void describe(Structs* structs);

class Describer {
 public:
  Describer(std::vector<Field>* fields, Structs* structs) : fields_(fields), structs_(structs) {}

  template <typename T>
  void operator()(const char* name, T& value, const wire::Bounds& bounds = wire::any()) {
    fields_->push_back({name, "", "", bounds});
    type_of(value, &fields_->back());
  }

 private:
  template <typename T>
  static std::string integer() {
    return "u" + std::to_string(8 * sizeof(T));
  }
  template <typename T>
  void type_of(T&, Field* field) {
    if constexpr (std::is_same_v<T, bool>) {
      field->type = "bool";
    } else if constexpr (std::is_enum_v<T>) {
      field->type = "enum";
      field->element = name_of<T>();
    } else {
      static_assert(std::is_unsigned_v<T>);
      field->type = integer<T>();
    }
  }
  void type_of(std::optional<uint64_t>&, Field* field) { field->type = "optional"; }
  void type_of(std::string_view&, Field* field) { field->type = "string"; }
  void type_of(std::string&, Field* field) { field->type = "string"; }
  void type_of(Runs&, Field* field) { field->type = "runs"; }
  void type_of(std::map<std::string, std::string>&, Field* field) { field->type = "map"; }
  template <size_t n>
  void type_of(std::array<char, n>&, Field* field) {
    field->type = "bytes";
    field->bounds = wire::raw(n).since(field->bounds.version);
  }
  template <typename T>
  void type_of(wire::Column<T>&, Field* field) {
    field->type = "column";
    field->element = integer<T>();
  }
  void type_of(std::vector<std::string>&, Field* field) {
    field->type = "list";
    field->element = "string";
  }
  template <typename T>
  void type_of(std::vector<T>&, Field* field) {
    field->type = "list";
    field->element = name_of<T>();
    describe<T>(structs_);
  }

  std::vector<Field>* fields_;
  Structs* structs_;
};

// Returns the first field that follows a field of a later version, or nullptr. Fields must be in
// the order of their versions, because older readers know only the first fields of a message.
inline const Field* misplaced(const std::vector<Field>& fields) {
  const auto older = [](const Field& a, const Field& b) {
    return a.bounds.version < b.bounds.version;
  };
  const auto found = std::is_sorted_until(fields.begin(), fields.end(), older);
  return found == fields.end() ? nullptr : &*found;
}

template <typename T>
void describe(Structs* structs) {
  const std::string name = name_of<T>();
  if (structs->count(name) != 0) return;
  std::vector<Field> fields;
  T value;
  Describer describer(&fields, structs);
  value.each(describer);
  (*structs)[name] = fields;
}

}  // namespace zlog::describe
