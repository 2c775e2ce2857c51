#pragma once

#include <string>
#include <string_view>

namespace zlog {

// A place where objects live and methods run on them.
class Host {
 public:
  virtual ~Host() = default;

  // Runs a method on an object as one atomic, isolated step. Answers a negative errno (EOPNOTSUPP:
  // no such method; ENOENT: no such object; nothing was applied) or the method's Code, with its
  // reply in `reply`. Thread-safe; never throws.
  virtual int execute(std::string_view object, std::string_view method, std::string_view payload,
                      std::string* reply) = 0;
};

}  // namespace zlog
