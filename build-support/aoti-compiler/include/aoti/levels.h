// CPU levels by name: what each needs of the processor that runs it.
// Knows nothing of models. Asks the processor itself, through the compiler's builtins.
#pragma once

namespace aoti {
namespace {

// Null, or what the processor lacks.
__attribute__((unused)) const char *lacks_nothing() { return nullptr; }

#if defined(__x86_64__)
#define AOTI_NEEDS(feature) \
  if (!__builtin_cpu_supports(feature)) return "this processor has no " feature

__attribute__((unused)) const char *lacks_x86_64_v3() {
  __builtin_cpu_init();
  AOTI_NEEDS("avx2");
  AOTI_NEEDS("fma");
  AOTI_NEEDS("bmi");
  AOTI_NEEDS("bmi2");
  return nullptr;
}

__attribute__((unused)) const char *lacks_x86_64_v4() {
  if (const char *lack = lacks_x86_64_v3()) return lack;
  AOTI_NEEDS("avx512f");
  AOTI_NEEDS("avx512bw");
  AOTI_NEEDS("avx512cd");
  AOTI_NEEDS("avx512dq");
  AOTI_NEEDS("avx512vl");
  return nullptr;
}

#undef AOTI_NEEDS
#endif

} // namespace
} // namespace aoti
