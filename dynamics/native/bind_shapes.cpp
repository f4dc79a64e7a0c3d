// Shapes that contacts touch, and their signed distance. Array shapes are checked here, physics in Python.
#include <algorithm>

#include "bindings.hpp"
#include "shape_handle.hpp"

namespace cito {
namespace {

ShapeHandle at_placement(int kind, const In<2> &rotation, const In<1> &position) {
  check_shape("rotation", rotation, {3, 3});
  check_shape("position", position, {3});
  ShapeHandle h;
  h.shape.kind = kind;
  std::copy_n(rotation.data(), 9, h.shape.R);
  std::copy_n(position.data(), 3, h.shape.p);
  return h;
}

ShapeHandle plane(In<2> rotation, In<1> position) { return at_placement(shape_plane, rotation, position); }

ShapeHandle box(In<2> rotation, In<1> position, In<1> half, double radius) {
  ShapeHandle h = at_placement(shape_box, rotation, position);
  check_shape("half", half, {3});
  std::copy_n(half.data(), 3, h.shape.half);
  h.shape.radius = radius;
  return h;
}

ShapeHandle height_field(In<2> spline, In<1> origin, In<1> rate) {
  if (spline.shape(0) < 4 || spline.shape(1) < 4) refuse("spline", "have at least (4, 4) coefficients");
  checked_count("spline", spline.size());
  check_shape("origin", origin, {2});
  check_shape("rate", rate, {2});
  ShapeHandle h;
  h.shape.kind = shape_heights;
  h.shape.rows = int(spline.shape(0)) - 2, h.shape.columns = int(spline.shape(1)) - 2;
  std::copy_n(origin.data(), 2, h.shape.origin);
  std::copy_n(rate.data(), 2, h.shape.rate);
  h.spline = std::make_shared<const std::vector<double>>(spline.data(), spline.data() + spline.size());
  h.shape.spline = h.spline->data();
  return h;
}

// Distances (K), gradients (K,3), normals (K,3) and dn/dy (K,3,3) at the points (K,3), all in the
// frame of the body that carries the shape, or of the world.
nb::tuple shape_distance(const ShapeHandle &shape, In<2> points) {
  const std::size_t K = points.shape(0);
  check_shape("points", points, {K, 3});
  double *d, *gradient, *normal, *turn;
  nb::object o_d = make_array<double>({K}, &d), o_gradient = make_array<double>({K, 3}, &gradient),
             o_normal = make_array<double>({K, 3}, &normal), o_turn = make_array<double>({K, 3, 3}, &turn);
  for (std::size_t i = 0; i < K; ++i) {
    Distance at;
    kernels.signed_distance(shape.shape, points.data() + 3 * i, at);
    d[i] = at.d;
    std::copy_n(at.gradient, 3, gradient + 3 * i);
    std::copy_n(at.n, 3, normal + 3 * i);
    std::copy_n(at.turn, 9, turn + 9 * i);
  }
  return nb::make_tuple(o_d, o_gradient, o_normal, o_turn);
}

}  // namespace

void bind_shapes(nb::module_ &m) {
  nb::class_<ShapeHandle>(m, "Shape", "What a contact touches, as the native core sees it.");
  m.def("plane", &plane, nb::arg("rotation"), nb::arg("position"));
  m.def("box", &box, nb::arg("rotation"), nb::arg("position"), nb::arg("half"), nb::arg("radius"));
  m.def("height_field", &height_field, nb::arg("spline"), nb::arg("origin"), nb::arg("rate"));
  m.def("shape_distance", &shape_distance, nb::arg("shape"), nb::arg("points"));
}

}  // namespace cito
