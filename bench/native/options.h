#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace zlog::bench {

// What the command line says: words of the form NAME=VALUE.
class Options {
 public:
  // Throws std::invalid_argument, as all of these do, for what is malformed or missing.
  explicit Options(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos) throw std::invalid_argument("not NAME=VALUE: " + word);
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }

  bool has(const std::string& name) const { return values_.count(name) != 0; }

  const std::string& text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::invalid_argument("missing option: " + name);
    return found->second;
  }

  std::string text_or_empty(const std::string& name) const {
    return has(name) ? text(name) : std::string();
  }

  // A number from 1 on.
  uint64_t number(const std::string& name) const {
    const std::string& word = text(name);
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    const uint64_t number = digits && !word.empty() ? std::stoull(word) : 0;
    if (number == 0) throw std::invalid_argument(name + " must be a number from 1 on, not " + word);
    return number;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace zlog::bench
