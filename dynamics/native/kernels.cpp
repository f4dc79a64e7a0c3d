// The same loops compiled twice, for AVX2+FMA and for the baseline of the platform; the choice is
// made once, at load.
#include "kernels.hpp"  // and every standard header that a .inc needs: none may come after the pragma

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace cito {
namespace baseline {
namespace {
#include "kernels.inc"
}
}  // namespace baseline

#if defined(__x86_64__) && defined(__GNUC__)  // gcc and clang
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace avx2 {
namespace {
#include "kernels.inc"
}
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
static Kernels pick() {
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has_avx2 ? avx2::table("avx2") : baseline::table("baseline");
}
#else
static Kernels pick() { return baseline::table("baseline"); }
#endif

const Kernels kernels = pick();
}  // namespace cito
