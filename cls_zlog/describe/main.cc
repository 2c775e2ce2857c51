// Prints the class's methods and the fields of every message and stored value, as JSON. `python -m
// tools.messages` turns that into Python code and the documentation's tables.

#include <cstdio>

#include "cls_zlog/describe/visitors.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/method_table.h"
#include "cls_zlog/stripe/header.h"

namespace {

using namespace zlog;

void print(const describe::Field& field, bool first) {
  const wire::Bounds& bounds = field.bounds;
  std::printf(
      "%s\n    {\"name\": \"%s\", \"type\": \"%s\", \"element\": \"%s\", \"min\": %llu, \"max\": "
      "%llu, \"rule\": %d, \"raw\": %d, \"each\": %d, \"version\": %d, \"heeded\": %d}",
      first ? "" : ",", field.name.c_str(), field.type.c_str(), field.element.c_str(),
      static_cast<unsigned long long>(bounds.min), static_cast<unsigned long long>(bounds.max),
      static_cast<int>(bounds.rule), bounds.raw, bounds.each, bounds.version, bounds.heeded);
}

class Printer {
 public:
  template <auto handler>
  void operator()(Handler<handler>, const char* name, int flags) {
    print(static_cast<decltype(handler)>(nullptr), name, flags);
  }
  describe::Structs structs;

 private:
  template <typename Reply, typename Request>
  void print(Result<Reply> (*)(Object&, const Request&), const char* name, int flags) {
    using Message = MessageOf<Reply>;
    describe::describe<Request>(&structs);
    describe::describe<Message>(&structs);
    std::printf("%s\n  {\"name\": \"%s\", \"flags\": %d, \"request\": \"%s\", \"reply\": \"%s\"}",
                first_ ? "" : ",", name, flags, describe::name_of<Request>().c_str(),
                describe::name_of<Message>().c_str());
    first_ = false;
  }
  bool first_ = true;
};

}  // namespace

int main() {
  Printer printer;
  std::printf("{\"methods\": [");
  each_method(printer);
  describe::describe<RefusalReply>(&printer.structs);
  describe::describe<View>(&printer.structs);
  describe::describe<Header>(&printer.structs);
  describe::describe<head::Head>(&printer.structs);
  std::printf("],\n\"structs\": {");
  bool first = true;
  for (const auto& [name, fields] : printer.structs) {
    if (const describe::Field* late = describe::misplaced(fields); late != nullptr) {
      std::fprintf(stderr,
                   "%s.%s comes behind a field of a later version: a new field is the last\n",
                   name.c_str(), late->name.c_str());
      return 1;
    }
    std::printf("%s\n  \"%s\": [", first ? "" : ",", name.c_str());
    first = false;
    for (size_t i = 0; i < fields.size(); i++) print(fields[i], i == 0);
    std::printf("]");
  }
  std::printf("}}\n");
  return 0;
}
