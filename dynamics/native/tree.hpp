// A kinematic tree as plain tables: bodies in topological order, each moved by one joint against its parent.
#pragma once
#include "core.hpp"

namespace cito {

enum JointType : int { joint_free = 0, joint_revolute = 1, joint_prismatic = 2 };

// What an entry of theta changes, by how it enters: tree_parameters.inc.
enum ParameterKind : int {
  parameter_mass = 0, parameter_damping = 1, parameter_armature = 2,  // logarithm of a scale
  parameter_placement = 3, parameter_point = 4                       // offset along one axis [m]
};

struct Tree {
  int nb = 0, nq = 0, nv = 0, nu = 0, nc = 0;
  const int *parent = nullptr;       // (nb) -1: the world
  const int *type = nullptr;         // (nb) JointType
  const int *iq = nullptr, *iv = nullptr;  // (nb) first coordinate, first velocity
  const int *depth = nullptr;        // (nv) number of velocities on the path to the root, own joint's included
  const int *path = nullptr;         // (nv,nv) those velocities, own joint's first, root's last
  const int *body = nullptr;         // (nv) body of a velocity
  const double *placement = nullptr; // (nb,12) joint frame in the parent: rotation (9), position (3)
  const double *axis = nullptr;      // (nb,3) unit, in the joint frame
  const double *mass = nullptr;      // (nb) [kg]
  const double *com = nullptr;       // (nb,3) in the body frame [m]
  const double *inertia = nullptr;   // (nb,9) about the centre of mass, body axes [kg m^2]
  const double *armature = nullptr, *damping = nullptr;  // (nv)
  const double *actuation = nullptr; // (nv,nu)
  double gravity = 9.81;             // [m/s^2] along -z
  // contact points: centre of a sphere of this radius on a body, over the plane normal . x = offset
  const int *point_body = nullptr;       // (nc)
  const double *point = nullptr;         // (nc,3) in the body frame [m]
  const double *radius = nullptr;        // (nc) [m]
  double frame[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};  // rows T1, T2, N of the ground in the world
  double offset = 0;                     // [m]
  // theta (np): kind, the body (of a point: the contact) it belongs to, and the axis of an offset
  int np = 0;
  const int *parameter_kind = nullptr, *parameter_of = nullptr, *parameter_axis = nullptr;  // (np)
};

}  // namespace cito
