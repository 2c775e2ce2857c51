#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace zlog::bench {

// The options of the command line, as words of the form NAME=VALUE.
class Options {
 public:
  // Like all methods here, throws std::invalid_argument if an option is malformed or missing.
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

  // Returns a number of at least 1.
  uint64_t number(const std::string& name) const {
    const std::string& word = text(name);
    const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
    const uint64_t number = digits && !word.empty() ? std::stoull(word) : 0;
    if (number == 0) throw std::invalid_argument(name + " must be 1 or more, not " + word);
    return number;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace zlog::bench
