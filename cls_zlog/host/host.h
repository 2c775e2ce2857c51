#pragma once

#include <string>
#include <string_view>

#include "cls_zlog/host/listing.h"

namespace zlog {

// A place where objects live and methods run on them.
class Host {
 public:
  virtual ~Host() = default;

  // Runs a method on an object as one atomic, isolated step. Answers a negative errno (EOPNOTSUPP:
  // no such method; EINVAL: an object without a name; ENOENT: no such object; nothing was applied)
  // or the method's Code, with its reply in `reply`. Thread-safe; never throws.
  virtual int execute(std::string_view object, std::string_view method, std::string_view payload,
                      std::string* reply) = 0;

  // Lists the objects whose names begin with `prefix`, from where `after` says on: the `next` of
  // the page before, empty at first. Answers 0 or a negative errno. Thread-safe; never throws.
  virtual int list(std::string_view prefix, std::string_view after, Listing* page) = 0;
};

}  // namespace zlog
