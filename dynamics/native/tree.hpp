// A kinematic tree as plain tables: bodies in topological order, each moved by one joint against its parent.
#pragma once
#include "core.hpp"

namespace cito {

enum JointType : int { joint_free = 0, joint_revolute = 1, joint_prismatic = 2, joint_spherical = 3 };

// Coordinates and velocities of a joint.
inline int joint_nq(int type) { return type == joint_free ? 7 : type == joint_spherical ? 4 : 1; }
inline int joint_nv(int type) { return type == joint_free ? 6 : type == joint_spherical ? 3 : 1; }


// What an entry of theta changes, by how it enters: tree_parameters.inc.
enum ParameterKind : int {
  parameter_mass = 0, parameter_damping = 1, parameter_armature = 2,  // logarithm of a scale
  parameter_placement = 3, parameter_point = 4                       // offset along one axis [m]
};

enum ShapeKind : int { shape_plane = 0, shape_box = 1, shape_heights = 2 };

// What a contact's sphere touches, in a frame of its own: the half space z < 0; a box grown by a radius (a capsule
// along z where half = (0, 0, l), a sphere where half = 0); the ground under a bicubic spline z = f(x, y).
struct Shape {
  int kind = shape_plane;
  double R[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, p[3] = {0, 0, 0};  // its frame in the body that carries it, or the world
  double half[3] = {0, 0, 0}, radius = 0;                       // [m]
  int rows = 0, columns = 0;                   // grid points along x and y
  double origin[2] = {0, 0}, rate[2] = {1, 1}; // first grid point [m], grid points per metre
  const double *spline = nullptr;              // (rows + 2, columns + 2) coefficients [m], one beyond each edge
};

// Distance d to a shape, its gradient, the unit normal n at that point y and its Jacobian turn = dn/dy. The gradient
// is n but over height fields.
struct Distance {
  double d, gradient[3], n[3], turn[9];
};

// Entries (row, column .. column + 3) of a matrix over velocities, those with mask 1.
struct EntryGroup {
  int row, column;
  double mask[4];
};

struct Tree {
  int nb = 0, nq = 0, nv = 0, nu = 0, nc = 0;
  const int *parent = nullptr;       // (nb) -1: the world
  const int *type = nullptr;         // (nb) JointType
  const int *iq = nullptr, *iv = nullptr;  // (nb) first coordinate, first velocity
  const int *depth = nullptr;        // (nv) number of velocities on the path to the root, own joint's included
  const int *path = nullptr;         // (nv,nv) those velocities, own joint's first, root's last
  const int *body = nullptr;         // (nv) body of a velocity
  // where column velocities move what row velocities move, or the same joint; and where they move the row's parent body
  int n_below = 0, n_above = 0;
  const EntryGroup *below = nullptr, *above = nullptr;
  const double *placement = nullptr; // (nb,12) joint frame in the parent: rotation (9), position (3)
  const double *axis = nullptr;      // (nb,3) unit, in the joint frame
  const double *mass = nullptr;      // (nb) [kg]
  const double *com = nullptr;       // (nb,3) in the body frame [m]
  const double *inertia = nullptr;   // (nb,9) about the centre of mass, body axes [kg m^2]
  const double *armature = nullptr, *damping = nullptr;  // (nv)
  // (nv) forces -stiffness q + pull, - drive_damping v and dry friction of joints with one coordinate
  const double *stiffness = nullptr, *pull = nullptr, *drive_damping = nullptr, *dry_friction = nullptr;
  const double *actuation = nullptr; // (nv,nu)
  double gravity = 9.81;             // [m/s^2] along -z
  // contacts: a sphere of this radius on a body against a shape on another body or on the world
  const int *point_body = nullptr;       // (nc)
  const double *point = nullptr;         // (nc,3) its centre in the body frame [m]
  const double *radius = nullptr;        // (nc) [m]
  const Shape *shape = nullptr;          // (nc)
  const int *shape_body = nullptr;       // (nc) -1: the world
  // velocities that move the sphere (side 1), the shape (2) or both (3): those of contact i are entries
  // support_start[i] .. support_start[i + 1] - 1
  const int *support_start = nullptr, *support = nullptr, *side = nullptr;
  // theta (np): kind, the body (of a point: the contact) it belongs to, and the axis of an offset
  int np = 0;
  const int *parameter_kind = nullptr, *parameter_of = nullptr, *parameter_axis = nullptr;  // (np)
  // joint limits, after the contact points: side 1 keeps q above the limit, -1 below
  int nl = 0;
  const int *limit_body = nullptr, *limit_side = nullptr;  // (nl)
  const double *limit = nullptr;         // (nl) [rad or m]
};

}  // namespace cito
