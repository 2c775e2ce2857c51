#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"

namespace zlog {

// The name under which the class is registered in an OSD.
constexpr const char* kClassName = "zlog";

// What a method does to its object, as an OSD registers it; kAddsData: a full store refuses it.
enum MethodFlags : int { kRead = 1, kWrite = 2, kAddsData = 4 };

// One method of the class. `call` answers a negative errno or a Code, and puts the reply into
// `out`: it decodes the request, runs the method and encodes what that answers. What it answers
// other than kOk has changed nothing. It may throw std::bad_alloc and nothing else: every host
// catches everything.
struct Method {
  const char* name;
  int flags;
  int (*call)(Object& object, std::string_view in, std::string* out);
};

// All methods, in the order in which they are documented.
const std::vector<Method>& methods();

// The method of that name, or nullptr (which a host answers with EOPNOTSUPP).
const Method* find_method(std::string_view name);

}  // namespace zlog
