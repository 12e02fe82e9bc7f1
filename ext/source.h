// Where in the user's code something is made.
#pragma once
#include <Python.h>

namespace pb {

// calling_line(is_users, scopes, kind): the innermost Python frame whose file is the user's, as
// kind(file, line, function, scopes); None if there is none.
//   is_users  dict: file name -> bool; __missing__ is asked for others
//   scopes    ContextVar that has a value or a default
//   kind      a named tuple of four fields
bool add_source(PyObject* module);

}  // namespace pb
