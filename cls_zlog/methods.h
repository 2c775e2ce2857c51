#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"

namespace zlog {

// The name of the class in an OSD.
constexpr const char* kClassName = "zlog";

// How a method uses its object. A full store refuses methods that add data.
enum MethodFlags : int { kRead = 1, kWrite = 2, kAddsData = 4 };

// A method of the class. `call` decodes the request, runs the method and encodes the reply into
// `out`. It returns a Code or a negative errno, and has changed nothing if the result is not kOk.
// Hosts catch every exception, but a method should throw only std::bad_alloc.
struct Method {
  const char* name;
  int flags;
  int (*call)(Object& object, std::string_view in, std::string* out);
};

// All methods, in the order in which they are documented.
const std::vector<Method>& methods();

// Returns nullptr if no method has this name. A host then returns EOPNOTSUPP.
const Method* find_method(std::string_view name);

}  // namespace zlog
