#pragma once

#include <string>

namespace zlog {

// Space on the disk that is kept for what makes room. LMDB changes no page in place, so on a full
// disk even removing needs some new ones.
//
// Life: whole → given up, for the length of a transaction → what is left of it; whole again as soon
// as the disk has room. Several processes share one; a store may be without.
class Reserve {
 public:
  Reserve() = default;
  ~Reserve();
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

  // Has the one in a directory, which is made if it is missing.
  void open(const std::string& directory);

  // Whether all of it is there. True where there is none to be had.
  bool whole() const;

  // Takes as much as the disk has room for. True when it is whole.
  bool make();
  void give_up();

 private:
  int fd_ = -1;
};

}  // namespace zlog
