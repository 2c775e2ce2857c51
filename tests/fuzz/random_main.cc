// main() of a fuzz target where libFuzzer is not there: random inputs, or stored ones again.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

int run_random(uint64_t seed, uint64_t count) {
  std::printf("seed %llu, %llu inputs\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(count));
  std::fflush(stdout);
  std::mt19937_64 random(seed);
  std::string bytes;
  for (uint64_t i = 0; i < count; i++) {
    bytes.resize(random() % 400);
    for (char& byte : bytes) byte = static_cast<char>(random());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "1";
  if (first.find_first_not_of("0123456789") == std::string_view::npos) {
    return run_random(std::strtoull(first.data(), nullptr, 10),
                      argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20000);
  }
  for (int i = 1; i < argc; i++) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  return 0;
}
