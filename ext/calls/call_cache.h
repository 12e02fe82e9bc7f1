// The call cache of jit: a callable that remembers, by the key of its arguments (call_key.h), which program to run.
//
// On a call
//  1. If the thread traces (trace_state.h), or the arguments have no key: miss(args, kwargs), whose result is returned.
//  2. The key is looked up. If it is new: miss(args, kwargs) -> (result, entry or None); an entry is kept for the key.
//  3. Else the entry says what to do: the kept leaves are turned into memory (an Array's own; NumPy memory in place if
//     its layout allows it, else a copy cast to the program's dtype; Python scalars written to the stack), the program
//     runs, and its outputs are put together by `out_tree`.
//
// CacheEntry(run, out_tree, kept=None, uses=0)
//   run       an Executable whose inputs are the kept leaves, in order; or a callable that takes the list of kept
//             leaves as Arrays (made by the hook `asarray` where they are something else) and returns the sequence
//             of outputs
//   out_tree  PyTreeDef with as many leaves as there are outputs
//   kept      the numbers of the leaves that are passed on, ascending or not; None: all of them
//   uses      after so many hits miss is asked again, e.g. for a compiled program once that pays, or when Python
//             functions of a plan have taken as long as compiling does; 0: never. The entry stays in use if miss
//             gives none
// An entry whose Executable does not fit the leaves of its key raises RuntimeError when it is handed in.
//
// With `warmup` (a number of calls) the function is eager: calls that Python must see to, and the first `warmup` calls
// of each key without arrays of kDecides elements, go to the function itself. Then miss is asked; each time that it has
// no entry, the wait doubles.
//
// named_after(wrapper, fun) gives a function the name, module, docstring, annotations and attributes of another object,
// as far as that has them, and the attribute __wrapped__; returns it. (What functools.wraps does, which takes as long as
// some calls.)
//
// Static arguments belong to the key by their value: those at static_argnums and static_argnames, and those at
// literal_argnums that are Python ints or bools. With static_keywords all keyword arguments are static.
//
// With while_tracing it makes no difference whether the thread traces. An eager function with `known` and `find`
// is called as transformed.h says while the thread's interpreter remembers (trace_state.h).
//
// The `maxsize` most recently used entries are kept. Thread-safe under the GIL, which may be released while a program
// runs. A concurrent miss on the same key traces twice; the later entry stays.
#pragma once
#include <Python.h>

namespace pb {

constexpr long long kDecides = 1 << 13;  // elements of an array from which on miss is asked for the first call

bool add_call_cache_types(PyObject* module);

}  // namespace pb
