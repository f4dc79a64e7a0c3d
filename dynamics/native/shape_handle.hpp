// A shape as Python holds it; owns the coefficients of its spline.
#pragma once
#include <memory>
#include <vector>

#include "tree.hpp"

namespace cito {
struct ShapeHandle {
  Shape shape;
  std::shared_ptr<const std::vector<double>> spline;
};
}  // namespace cito
