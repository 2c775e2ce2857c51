#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"

namespace zlog {

// The name under which the class is registered in an OSD.
constexpr const char* kClassName = "zlog";

// What a method does to its object, as an OSD registers it.
enum MethodFlags : int { kRead = 1, kWrite = 2 };

// One method of the class. `call` answers a negative errno (nothing applied) or a Code, and puts
// the reply into `out`. It may throw std::bad_alloc and nothing else: every host catches
// everything.
struct Method {
  const char* name;
  int flags;
  int (*call)(Object& object, std::string_view in, std::string* out);
};

// All methods, in the order in which they are documented.
constexpr size_t kMethodCount = 36;
const std::vector<Method>& methods();

// The method of that name, or nullptr (which a host answers with EOPNOTSUPP).
const Method* find_method(std::string_view name);

}  // namespace zlog
