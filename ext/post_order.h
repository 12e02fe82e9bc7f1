// Walks over expressions of the loop IR, which passes ask for all the time.
#pragma once
#include <Python.h>

namespace pb {

// post_order(roots, Op, Load): every expression reachable from the tuple `roots`, once each, operands before users.
//   Op, Load  the classes (loops/ir/ir.py) whose slots `args`, a tuple, and `index` hold operands; others have none
bool add_post_order(PyObject* module);

}  // namespace pb
