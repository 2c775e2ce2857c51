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

// Visitors that look at messages as types: what one is called, what its fields are, and a message of
// which each field is as small as it may be.
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

// The first field that comes behind one of a later version; nullptr: there is none. Readers that do
// not know the later one would take its bytes for this one's: that happens where a base that others
// begin with gets a field.
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

// Gives each field the least value that its bounds allow.
class Least {
 public:
  explicit Least(std::string_view text) : text_(text) {}

  template <typename T>
  void operator()(const char*, T& value, const wire::Bounds& bounds = wire::any()) {
    set(value, bounds);
  }

 private:
  template <typename T>
  void set(T& value, const wire::Bounds& bounds) {
    value = static_cast<T>(bounds.min);
  }
  void set(std::optional<uint64_t>&, const wire::Bounds&) {}
  void set(std::string_view& value, const wire::Bounds& bounds) {
    value = text_.substr(0, bounds.min);
  }
  void set(std::string& value, const wire::Bounds& bounds) { value = text_.substr(0, bounds.min); }
  void set(Runs& runs, const wire::Bounds&) { Runs::of({}, {0}, &runs); }
  void set(std::map<std::string, std::string>&, const wire::Bounds&) {}
  template <size_t n>
  void set(std::array<char, n>&, const wire::Bounds&) {}
  template <typename T>
  void set(wire::Column<T>& column, const wire::Bounds& bounds) {
    column = {zeros_, static_cast<uint32_t>(bounds.min)};
  }
  void set(std::vector<std::string>& list, const wire::Bounds& bounds) {
    list.assign(bounds.min, std::string(text_.substr(0, 1)));
  }
  template <typename T>
  void set(std::vector<T>& list, const wire::Bounds& bounds) {
    list.resize(bounds.min);
  }

  static constexpr char zeros_[64] = {};
  std::string_view text_;
};

// The bytes of a message of which each field is as small as it may be; `text` is what its strings
// and identities are cut from.
template <typename T>
std::string least(std::string_view text) {
  T value;
  Least visitor(text);
  value.each(visitor);
  std::string bytes;
  wire::encode(value, &bytes);
  return bytes;
}

}  // namespace zlog::describe
