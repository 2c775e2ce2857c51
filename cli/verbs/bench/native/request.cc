#include "request.h"

#include <sstream>
#include <stdexcept>

namespace zlog::bench {

Request::Request(const std::string& line) {
  std::istringstream words(line);
  words >> kind_;
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("not NAME=VALUE: " + word);
    options_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

const std::string& Request::text(const std::string& name) const {
  const auto found = options_.find(name);
  if (found == options_.end()) throw std::invalid_argument(kind_ + " needs " + name);
  return found->second;
}

uint64_t Request::number(const std::string& name) const {
  const std::string& word = text(name);
  const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
  const uint64_t number = digits && !word.empty() ? std::stoull(word) : 0;
  if (number == 0) throw std::invalid_argument(name + " must be a number from 1 on, not " + word);
  return number;
}

double Request::seconds() const {
  const double seconds = std::stod(text("seconds"));
  if (!(seconds > 0)) throw std::invalid_argument("seconds must be more than 0");
  return seconds;
}

}  // namespace zlog::bench
