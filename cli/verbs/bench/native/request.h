#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace zlog::bench {

// One line of input: what to measure, then options as NAME=VALUE, all separated by single spaces.
class Request {
 public:
  // Throws std::invalid_argument, as all of these do, for what can't be understood or is not there.
  explicit Request(const std::string& line);

  const std::string& kind() const { return kind_; }
  const std::string& text(const std::string& name) const;
  uint64_t number(const std::string& name) const;  // at least 1
  double seconds() const;                          // the option `seconds`

 private:
  std::string kind_;
  std::map<std::string, std::string> options_;
};

}  // namespace zlog::bench
