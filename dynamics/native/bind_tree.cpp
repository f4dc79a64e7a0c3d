// Kinematic trees as systems. Shapes and indices are checked here, physics in Python.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "bindings.hpp"
#include "shape_handle.hpp"
#include "system_handle.hpp"

namespace cito {
namespace {

// The tables of a tree and what follows from them.
struct TreeStorage {
  Tree tree;
  std::vector<int> parent, type, iq, iv, depth, path, body, up, curved_first, curved_size, point_body, shape_body, support_start,
      support, side, row_support, row_support_first, dim, row, kind, of, component, limit_body, limit_side;
  std::vector<double> placement, axis, mass, com, inertia, armature, damping, actuation, point, radius, limit, stiffness, pull,
      drive_damping, dry_friction;
  std::vector<ShapeHandle> shape_handles;
  std::vector<Shape> shape;
  std::vector<EntryGroup> below, above;
};

template <int D> std::vector<double> copied(const In<D> &a) { return {a.data(), a.data() + a.size()}; }
std::vector<int> copied(const IntIn<1> &a) { return {a.data(), a.data() + a.size()}; }

// The entries (row, column) where is_in is true, in groups of four columns.
template <class IsIn> std::vector<EntryGroup> group_entries(int nv, const IsIn &is_in) {
  std::vector<EntryGroup> groups;
  for (int row = 0; row < nv; ++row)
    for (int column = 0; column < nv; column += 4) {
      EntryGroup g = {row, column, {0, 0, 0, 0}};
      bool any = false;
      for (int k = column; k < std::min(column + 4, nv); ++k)
        if (is_in(row, k)) g.mask[k - column] = 1, any = true;
      if (any) groups.push_back(g);
    }
  return groups;
}

// Offsets of coordinates and velocities, and the path of each velocity to the root.
void index_tree(TreeStorage &s) {
  const int nb = int(s.parent.size());
  int nq = 0, nv = 0;
  for (int i = 0; i < nb; ++i) {
    s.iq.push_back(nq);
    s.iv.push_back(nv);
    nq += joint_nq(s.type[i]);
    for (int d = 0; d < joint_nv(s.type[i]); ++d, ++nv) s.body.push_back(i);
  }
  checked_size("nv", nv);
  s.depth.resize(nv);
  s.path.resize(std::size_t(nv) * nv);
  for (int k = 0; k < nv; ++k) {
    int length = 0;
    for (int i = s.body[k]; i >= 0; i = s.parent[i])
      for (int j = s.iv[i]; j < s.iv[i] + joint_nv(s.type[i]); ++j) s.path[k * nv + length++] = j;
    s.depth[k] = length;
  }
  for (int i = 0; i < nb; ++i) {
    const int last = s.parent[i] < 0 ? -1 : s.iv[s.parent[i]] + joint_nv(s.type[s.parent[i]]) - 1;
    s.up.push_back(last);
    const int size = joint_nv(s.type[i]);
    if (size == 1) continue;
    for (int k = s.iv[i]; k < s.iv[i] + size - 1; ++k) s.up.push_back(k);
    s.curved_first.push_back(s.iv[i]), s.curved_size.push_back(size);
  }
  std::vector<char> on_path(std::size_t(nv) * nv, 0);  // of the row: whether the column is
  for (int k = 0; k < nv; ++k)
    for (int l = 0; l < s.depth[k]; ++l) on_path[std::size_t(k) * nv + s.path[k * nv + l]] = 1;
  s.below = group_entries(nv, [&](int j, int k) { return on_path[std::size_t(k) * nv + j]; });
  s.above = group_entries(nv, [&](int j, int k) { return on_path[std::size_t(j) * nv + k] && s.body[j] != s.body[k]; });
  s.tree.nb = nb, s.tree.nq = nq, s.tree.nv = nv;
}

// Velocities of body's path to the root (-1: none).
std::vector<int> path_of(const TreeStorage &s, int body) {
  if (body < 0) return {};
  const int k = s.iv[body], nv = s.tree.nv;
  return {s.path.begin() + k * nv, s.path.begin() + k * nv + s.depth[k]};
}

// The velocities that move the sphere and the shape of each contact.
void index_contacts(TreeStorage &s) {
  s.support_start.push_back(0);
  for (std::size_t i = 0; i < s.point_body.size(); ++i) {
    const std::vector<int> a = path_of(s, s.point_body[i]), b = path_of(s, s.shape_body[i]);
    const auto has = [](const std::vector<int> &path, int k) { return std::find(path.begin(), path.end(), k) != path.end(); };
    for (int k : a) s.support.push_back(k), s.side.push_back(has(b, k) ? 3 : 1);
    for (int k : b)
      if (!has(a, k)) s.support.push_back(k), s.side.push_back(2);
    s.support_start.push_back(int(s.support.size()));
  }
}

// The velocities that each contact and each limit feels, for the system.
void index_rows(TreeStorage &s) {
  s.row_support_first.push_back(0);
  const auto add = [&](std::vector<int> velocities) {
    std::sort(velocities.begin(), velocities.end());
    s.row_support.insert(s.row_support.end(), velocities.begin(), velocities.end());
    s.row_support_first.push_back(int(s.row_support.size()));
  };
  for (int i = 0; i < s.tree.nc; ++i)
    add({s.support.begin() + s.support_start[i], s.support.begin() + s.support_start[i + 1]});
  for (int body : s.limit_body) add(path_of(s, body));
}

// Rows (ParameterKind, body or contact, axis), one for each entry of theta.
void read_parameters(const IntIn<2> &rows, TreeStorage &s) {
  Tree &t = s.tree;
  const std::size_t count = checked_size("parameters", rows.shape(0));
  check_shape("parameters", rows, {count, 3});
  for (std::size_t i = 0; i < count; ++i) {
    const int *row = rows.data() + 3 * i, owners = row[0] == parameter_point ? t.nc : t.nb;
    if (row[0] < parameter_mass || row[0] > parameter_point || row[1] < 0 || row[1] >= owners || row[2] < 0 || row[2] > 2)
      refuse("parameters", "hold a kind, a body or contact, and an axis, got row " + std::to_string(i));
    s.kind.push_back(row[0]), s.of.push_back(row[1]), s.component.push_back(row[2]);
  }
  t.np = int(count), t.parameter_kind = s.kind.data(), t.parameter_of = s.of.data();
  t.parameter_axis = s.component.data();
}

// Springs, drives and dry friction: (nv) each.
void add_forces(TreeStorage &s, const In<1> &stiffness, const In<1> &pull, const In<1> &drive_damping,
                const In<1> &dry_friction) {
  Tree &t = s.tree;
  const std::size_t nv = t.nv;
  check_shape("stiffness", stiffness, {nv});
  check_shape("pull", pull, {nv});
  check_shape("drive_damping", drive_damping, {nv});
  check_shape("dry_friction", dry_friction, {nv});
  for (std::size_t k = 0; k < nv; ++k)
    if (stiffness.data()[k] != 0 && joint_nv(s.type[s.body[k]]) > 1)
      refuse("stiffness", "be zero of joints with several velocities");
  s.stiffness = copied<1>(stiffness), s.pull = copied<1>(pull), s.drive_damping = copied<1>(drive_damping);
  s.dry_friction = copied<1>(dry_friction);
  t.stiffness = s.stiffness.data(), t.pull = s.pull.data(), t.drive_damping = s.drive_damping.data();
  t.dry_friction = s.dry_friction.data();
}

// What of these the step takes at its end.
void take_forces_late(const TreeStorage &s, double slip_speed, System &y) {
  const auto acts = [](const std::vector<double> &forces) {
    return std::any_of(forces.begin(), forces.end(), [](double f) { return f != 0; });
  };
  if (!(slip_speed > 0)) refuse("slip_speed", "be > 0");
  y.slip_speed = slip_speed, y.has_friction = acts(s.dry_friction);
  if (y.has_friction || acts(s.damping) || acts(s.stiffness) || acts(s.drive_damping))
    y.joint_forces = kernels.tree_joint_forces;
}

void add_limits(TreeStorage &s, const IntIn<1> &body, const IntIn<1> &side, const In<1> &limit) {
  Tree &t = s.tree;
  check_range("limit_body", body, 0, t.nb - 1);
  check_shape("limit_side", side, {body.size()});
  check_shape("limit", limit, {body.size()});
  for (std::size_t l = 0; l < body.size(); ++l) {
    if (side.data()[l] != 1 && side.data()[l] != -1) refuse("limit_side", "be 1 or -1 each");
    if (joint_nv(s.type[body.data()[l]]) > 1) refuse("limit_body", "be moved by joints with one velocity");
  }
  s.limit_body = copied(body), s.limit_side = copied(side), s.limit = copied<1>(limit);
  t.nl = int(body.size()), t.limit_body = s.limit_body.data(), t.limit_side = s.limit_side.data();
  t.limit = s.limit.data();
}

// Three rows for each contact point, then one for each joint limit.
void lay_out_contacts(TreeStorage &s) {
  s.dim.assign(s.tree.nc, 3);
  s.dim.resize(s.tree.nc + s.tree.nl, 1);
  int n = 0;
  for (int d : s.dim) s.row.push_back(n), n += d;
  checked_size("contacts", n);
}

// m (g t)^2 [J], about as wide as a law that looks for contacts within t = 25 ms, a step of a plan.
double energy_of_a_fall(const TreeStorage &s, double gravity) {
  double mass = 0;
  for (double m : s.mass) mass += m;
  return mass * (gravity * 0.025) * (gravity * 0.025);
}

SystemHandle tree_system(IntIn<1> parent, IntIn<1> type, In<2> placement, In<2> axis, In<1> mass, In<2> com,
                         In<2> inertia, In<1> armature, In<1> damping, In<2> actuation, double gravity,
                         IntIn<1> point_body, In<2> point, In<1> radius, IntIn<1> shape_body,
                         std::vector<ShapeHandle> shapes, IntIn<2> parameters, IntIn<1> limit_body, IntIn<1> limit_side,
                         In<1> limit, In<1> stiffness, In<1> pull, In<1> drive_damping, In<1> dry_friction,
                         double slip_speed, int guards) {
  const std::size_t bodies = checked_size("parent", parent.size()), contacts = point_body.size();
  check_shape("type", type, {bodies});
  check_range("type", type, joint_free, joint_spherical);
  for (std::size_t i = 0; i < bodies; ++i)
    if (parent.data()[i] < -1 || parent.data()[i] >= int(i))
      refuse("parent", "be -1 or an earlier body, got " + std::to_string(parent.data()[i]));
  check_shape("placement", placement, {bodies, 12});
  check_shape("axis", axis, {bodies, 3});
  check_shape("mass", mass, {bodies});
  check_shape("com", com, {bodies, 3});
  check_shape("inertia", inertia, {bodies, 9});
  if (guards < 0 || std::size_t(guards) > contacts) refuse("guards", "be a number of contacts");
  checked_size("point_body", 3 * contacts), checked_size("actuation", actuation.shape(1));
  check_range("point_body", point_body, 0, int(bodies) - 1);
  check_shape("point", point, {contacts, 3});
  check_shape("radius", radius, {contacts});
  check_shape("shape_body", shape_body, {contacts});
  check_range("shape_body", shape_body, -1, int(bodies) - 1);
  if (shapes.size() != contacts) refuse("shapes", "have one entry for each contact");
  for (std::size_t i = 0; i < contacts; ++i)
    if (shape_body.data()[i] == point_body.data()[i]) refuse("shape_body", "be another body than point_body");
  auto s = std::make_shared<TreeStorage>();
  s->parent = copied(parent), s->type = copied(type), s->point_body = copied(point_body);
  s->shape_body = copied(shape_body), s->shape_handles = std::move(shapes);
  for (const ShapeHandle &handle : s->shape_handles) s->shape.push_back(handle.shape);
  s->placement = copied<2>(placement), s->axis = copied<2>(axis), s->mass = copied<1>(mass), s->com = copied<2>(com);
  s->inertia = copied<2>(inertia), s->armature = copied<1>(armature), s->damping = copied<1>(damping);
  s->actuation = copied<2>(actuation), s->point = copied<2>(point), s->radius = copied<1>(radius);
  index_tree(*s);
  index_contacts(*s);
  Tree &t = s->tree;
  const std::size_t nv = t.nv;
  check_shape("armature", armature, {nv});
  check_shape("damping", damping, {nv});
  check_shape("actuation", actuation, {nv, actuation.shape(1)});
  t.nu = int(actuation.shape(1)), t.nc = int(point_body.size());
  t.parent = s->parent.data(), t.type = s->type.data(), t.iq = s->iq.data(), t.iv = s->iv.data();
  t.n_below = int(s->below.size()), t.below = s->below.data(), t.n_above = int(s->above.size()), t.above = s->above.data();
  t.depth = s->depth.data(), t.path = s->path.data(), t.body = s->body.data();
  t.placement = s->placement.data(), t.axis = s->axis.data(), t.mass = s->mass.data(), t.com = s->com.data();
  t.inertia = s->inertia.data(), t.armature = s->armature.data(), t.damping = s->damping.data();
  t.actuation = s->actuation.data(), t.point_body = s->point_body.data(), t.point = s->point.data();
  t.radius = s->radius.data(), t.gravity = gravity;
  t.shape = s->shape.data(), t.shape_body = s->shape_body.data();
  t.support_start = s->support_start.data(), t.support = s->support.data(), t.side = s->side.data();
  read_parameters(parameters, *s);
  add_forces(*s, stiffness, pull, drive_damping, dry_friction);
  add_limits(*s, limit_body, limit_side, limit);
  lay_out_contacts(*s);

  SystemHandle h;
  System &y = h.system;
  y.self = y.tree = &t, y.nq = t.nq, y.nv = t.nv, y.nu = t.nu, y.nc = t.nc + t.nl, y.n = 3 * t.nc + t.nl;
  y.dim = s->dim.data(), y.row = s->row.data(), y.workspace = kernels.tree_workspace(t);
  index_rows(*s);
  y.support = s->row_support.data(), y.support_first = s->row_support_first.data();
  y.up = s->up.data(), y.curved = int(s->curved_first.size());
  y.curved_first = s->curved_first.data(), y.curved_size = s->curved_size.data();
  y.limits = t.nl, y.guards = guards, y.usual_rho = energy_of_a_fall(*s, gravity);
  take_forces_late(*s, slip_speed, y);
  y.terms = kernels.tree_terms, y.derivatives = kernels.tree_derivatives;
  y.transposed_derivatives = kernels.tree_transposed_derivatives;
  if (t.np) {
    y.np = t.np, y.workspace = kernels.varied_tree_workspace(t);
    y.terms = kernels.varied_tree_terms, y.derivatives = kernels.varied_tree_derivatives;
    y.transposed_derivatives = kernels.varied_tree_transposed_derivatives;
  }
  y.integrate = kernels.tree_integrate, y.difference = kernels.tree_difference;
  y.to_tangent = kernels.tree_to_tangent, y.to_coordinates = kernels.tree_to_coordinates;
  y.integrate_jacobians = kernels.tree_integrate_jacobians;
  y.difference_jacobian = kernels.tree_difference_jacobian;
  h.storage = s;
  return h;
}

}  // namespace

void bind_tree(nb::module_ &m) {
  m.def("tree_system", &tree_system, nb::arg("parent"), nb::arg("type"), nb::arg("placement"), nb::arg("axis"),
        nb::arg("mass"), nb::arg("com"), nb::arg("inertia"), nb::arg("armature"), nb::arg("damping"),
        nb::arg("actuation"), nb::arg("gravity"), nb::arg("point_body"), nb::arg("point"), nb::arg("radius"),
        nb::arg("shape_body"), nb::arg("shapes"), nb::arg("parameters"), nb::arg("limit_body"), nb::arg("limit_side"),
        nb::arg("limit"), nb::arg("stiffness"), nb::arg("pull"), nb::arg("drive_damping"), nb::arg("dry_friction"),
        nb::arg("slip_speed"), nb::arg("guards") = 0);
}

}  // namespace cito
