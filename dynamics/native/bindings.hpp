// What the binding files share: arrays, and the checks that no caller's mistake gets past.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace cito {
namespace nb = nanobind;

// C-contiguous double arrays of one, two, ... axes; None is allowed where the binding says so.
template <int D> using In = nb::ndarray<const double, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
template <int D> using IntIn = nb::ndarray<const int, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
template <int D> using Maybe = std::optional<In<D>>;
template <class T> const double *data_or_null(const T &a) { return a ? a->data() : nullptr; }

// A numpy array of doubles (or ints) that owns its memory: zeros, or whatever there was where all of it is written to.
template <class T> nb::object make_array(std::initializer_list<std::size_t> shape, T **data, bool zeros = true) {
  std::size_t size = 1;
  for (std::size_t s : shape) size *= s;
  T *block = zeros ? new T[size ? size : 1]() : new T[size ? size : 1];
  nb::capsule owner(block, [](void *p) noexcept { delete[] static_cast<T *>(p); });
  *data = block;
  return nb::cast(nb::ndarray<nb::numpy, T>(block, shape.size(), shape.begin(), owner));
}

// ---------------------------------------------------------------------------- checks
[[noreturn]] inline void refuse(const char *name, const std::string &what) {
  throw nb::value_error((std::string("`") + name + "` must " + what).c_str());
}

// Raises where an argument has another shape than the others imply.
template <class A> void check_shape(const char *name, const A &a, std::initializer_list<std::size_t> shape) {
  bool fits = a.ndim() == shape.size();
  for (std::size_t i = 0; fits && i < a.ndim(); ++i) fits = a.shape(i) == shape.begin()[i];
  if (fits) return;
  std::string wanted, got;
  for (std::size_t s : shape) wanted += (wanted.empty() ? "" : ", ") + std::to_string(s);
  for (std::size_t i = 0; i < a.ndim(); ++i) got += (i ? ", " : "") + std::to_string(a.shape(i));
  refuse(name, "have shape (" + wanted + "), got (" + got + ")");
}

template <class A>
void check_shape(const char *name, const std::optional<A> &a, std::initializer_list<std::size_t> shape) {
  if (a) check_shape(name, *a, shape);
}

// Raises where a whole number of an array is outside least..most.
template <class A> void check_range(const char *name, const A &a, int least, int most) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a.data()[i] < least || a.data()[i] > most)
      refuse(name, "hold whole numbers from " + std::to_string(least) + " to " + std::to_string(most) + ", got " +
                       std::to_string(a.data()[i]));
}

inline void check_modes(const IntIn<2> &modes, std::initializer_list<std::size_t> shape) {
  check_shape("modes", modes, shape);
  check_range("modes", modes, separating, clamping);
}

// The kernels index by int: one matrix of a problem, and one trajectory's array, must have fewer entries than 2^31.
constexpr std::size_t largest_size = 1 << 14;

inline int checked_size(const char *name, std::size_t size) {
  if (size > largest_size) refuse(name, "be at most " + std::to_string(largest_size) + ", got " + std::to_string(size));
  return int(size);
}

inline int checked_count(const char *name, std::size_t count) {
  const std::size_t most = std::numeric_limits<int>::max() - 1;
  if (count > most) refuse(name, "be at most " + std::to_string(most) + ", got " + std::to_string(count));
  return int(count);
}

inline void check_extent(const char *name, std::initializer_list<std::size_t> shape) {
  double size = 1;  // a product of lengths may exceed every integer type
  for (std::size_t s : shape) size *= double(s);
  if (size > std::numeric_limits<int>::max()) refuse(name, "have fewer than 2^31 entries for each trajectory");
}

// Rows of each contact (1, 2 or 3) and where they start; returns their number n.
inline int read_layout(const char *name, const IntIn<1> &dims, std::vector<int> &dim, std::vector<int> &row) {
  checked_size(name, dims.size());
  check_range(name, dims, 1, 3);
  int n = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    dim.push_back(dims.data()[i]);
    row.push_back(n);
    n += dims.data()[i];
  }
  return checked_size(name, n);
}

// ---------------------------------------------------------------------------- threads
// body(i, arena) for i in [0, count), on `threads` threads (no more than the machine has) with a workspace each. What a body throws, and a failure to get its memory, is thrown here after all have ended.
void parallel_for(int count, int threads, std::size_t workspace, const std::function<void(int, Arena)> &body);

// Doubles that an arena may lose between its blocks, and before the first, to alignment.
constexpr std::size_t arena_slack = 1024;

// The memory from its first cache line on.
inline Arena arena_over(std::vector<double> &memory) {
  const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(memory.data()) + 63) & ~std::uintptr_t(63);
  return {reinterpret_cast<double *>(first), memory.data() + memory.size()};
}

// Memory of one call.
struct Workspace {
  std::vector<double> memory;
  explicit Workspace(std::size_t size) : memory(size + arena_slack) {}
  Arena arena() { return arena_over(memory); }
};

void bind_contact(nb::module_ &m);
void bind_system(nb::module_ &m);
void bind_adjoint(nb::module_ &m);
void bind_symbolic(nb::module_ &m);
void bind_shapes(nb::module_ &m);
void bind_solver(nb::module_ &m);
void bind_tree(nb::module_ &m);
void bind_soft(nb::module_ &m);

}  // namespace cito
