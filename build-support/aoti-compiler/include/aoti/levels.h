// CPU levels by name: what each needs of the processor that runs it.
// Knows nothing of models. Asks the processor itself: what compilers' builtins ask is not in every system's runtime library.
#pragma once

#if defined(__riscv) && defined(__linux__)
extern "C" unsigned long getauxval(unsigned long) noexcept;
#endif

namespace aoti {
namespace {

// Null, or what the processor lacks.
__attribute__((unused)) const char *lacks_nothing() { return nullptr; }

#if defined(__x86_64__)

// Registers of `cpuid`.
enum X86Register { kEbx, kEcx, kEdx };

// What a level needs: a bit of a register of a leaf.
struct X86Feature {
  unsigned leaf;
  X86Register of;
  int bit;
  const char *lack;
};

__attribute__((unused)) bool has_x86_feature(const X86Feature &feature) {
  unsigned registers[3], leaf = feature.leaf & 0x80000000u;
  const auto ask = [&] {
    unsigned sub = 0;
    __asm__ volatile("cpuid" : "+a"(leaf), "=b"(registers[kEbx]), "+c"(sub), "=d"(registers[kEdx]));
    registers[kEcx] = sub;
  };
  ask(); // which leaves there are
  if (leaf < feature.leaf) return false;
  leaf = feature.leaf;
  ask();
  return registers[feature.of] >> feature.bit & 1;
}

// Whether the system keeps all of these registers (bits of XCR0) for each thread.
__attribute__((unused)) bool keeps_x86_registers(unsigned wanted) {
  if (!has_x86_feature({1, kEcx, 27, nullptr})) return false;
  unsigned kept, high;
  __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
  return (kept & wanted) == wanted;
}

#define AOTI_LACK(feature) "this processor has no " feature

template <int N> const char *lack_of(const X86Feature (&features)[N], unsigned registers) {
  for (const X86Feature &feature : features)
    if (!has_x86_feature(feature)) return feature.lack;
  return keeps_x86_registers(registers) ? nullptr : "this system does not keep the vector registers of programs";
}

__attribute__((unused)) const char *lacks_x86_64_v3() {
  static constexpr X86Feature features[] = {
      {1, kEcx, 12, AOTI_LACK("fma")},           {1, kEcx, 22, AOTI_LACK("movbe")}, {1, kEcx, 23, AOTI_LACK("popcnt")},
      {1, kEcx, 29, AOTI_LACK("f16c")},          {7, kEbx, 3, AOTI_LACK("bmi")},    {7, kEbx, 5, AOTI_LACK("avx2")},
      {0x80000001, kEcx, 5, AOTI_LACK("lzcnt")}, {7, kEbx, 8, AOTI_LACK("bmi2")},
  };
  return lack_of(features, 0x6);
}

__attribute__((unused)) const char *lacks_x86_64_v4() {
  static constexpr X86Feature features[] = {
      {7, kEbx, 16, AOTI_LACK("avx512f")},  {7, kEbx, 30, AOTI_LACK("avx512bw")}, {7, kEbx, 28, AOTI_LACK("avx512cd")},
      {7, kEbx, 17, AOTI_LACK("avx512dq")}, {7, kEbx, 31, AOTI_LACK("avx512vl")},
  };
  if (const char *lack = lacks_x86_64_v3()) return lack;
  return lack_of(features, 0xe6);
}

#undef AOTI_LACK
#elif defined(__riscv) && defined(__linux__)

// The processor tells nobody but the system, which has a bit for each letter of the instruction set's name.
__attribute__((unused)) const char *lacks_rv64gcv() {
  constexpr unsigned long kHardware = 16;
  return getauxval(kHardware) >> ('V' - 'A') & 1 ? nullptr : "this processor has no vector extension (V)";
}

#endif

} // namespace
} // namespace aoti
