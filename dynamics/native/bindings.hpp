// What the binding files share.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "kernels.hpp"

namespace cito {
namespace nb = nanobind;

// C-contiguous double arrays of one, two, ... axes; None is allowed where the binding says so.
template <int D> using In = nb::ndarray<const double, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
template <int D> using IntIn = nb::ndarray<const int, nb::ndim<D>, nb::c_contig, nb::device::cpu>;

// A numpy array of doubles (or ints) that owns its memory.
template <class T> nb::object make_array(std::initializer_list<std::size_t> shape, T **data) {
  std::size_t size = 1;
  for (std::size_t s : shape) size *= s;
  T *block = new T[size ? size : 1]();
  nb::capsule owner(block, [](void *p) noexcept { delete[] static_cast<T *>(p); });
  *data = block;
  return nb::cast(nb::ndarray<nb::numpy, T>(block, shape.size(), shape.begin(), owner));
}

// Memory of one thread for the kernels.
struct Workspace {
  std::vector<double> memory;
  explicit Workspace(std::size_t size) : memory(size) {}
  Arena arena() { return {memory.data(), memory.data() + memory.size()}; }
};

void bind_contact(nb::module_ &m);
void bind_system(nb::module_ &m);
void bind_symbolic(nb::module_ &m);
void bind_solver(nb::module_ &m);
void bind_tree(nb::module_ &m);

}  // namespace cito
