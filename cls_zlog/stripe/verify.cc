#include "cls_zlog/stripe/scan.h"
#include "cls_zlog/wire/verify_messages.h"

namespace zlog::stripe {
namespace {

// A verify's reply: the data is looked at here, and stays.
class Checking {
 public:
  Checking(Object& object, Header& header, const std::vector<uint64_t>& positions)
      : layout_(object, header), builder_(header.taken(), positions) {}

  void add(const ReadEntry& entry) { builder_.add(entry, {}); }

  int add_written(const Stored& stored, uint32_t first, uint32_t count) {
    const Record& record = stored.record;
    std::string buffer;
    std::string_view data;
    const int r = layout_.data_of(stored, first, first + count, &buffer, &data);
    if (r < 0) return r;
    for (uint32_t index = first; index < first + count; index++) {
      // What is cut off fails its checksum too: no need to tell it apart.
      const std::string_view bytes = data.substr(0, record.bytes_of(index));
      builder_.add(entry_of(record, index), bytes);
      data.remove_prefix(bytes.size());
    }
    return 0;
  }

  uint64_t data_bytes() const { return builder_.data_bytes(); }
  uint32_t count() const { return builder_.count(); }
  std::string encode() { return builder_.encode(); }

 private:
  Layout layout_;
  VerifyReplyBuilder builder_;
};

}  // namespace

int verify(Object& object, std::string_view in, std::string* out) {
  VerifyRequest request;
  if (const int r = VerifyRequest::decode(in, &request); r < 0) return r;
  Header header;
  if (const int r = enter(object, request.epoch, request.runs, &header, out); r != kOk) return r;
  const std::vector<uint64_t> positions = request.runs.positions();
  Checking reply(object, header, positions);
  const int r = Scan(object, header, positions, request.bytes_max, &reply).run();
  if (r < 0) return r;
  *out = reply.encode();
  return kOk;
}

}  // namespace zlog::stripe
