// A native program: int f(void** inputs, void** outputs, void* arena), returning 0 if all went well.
//
//  * inputs: the data of the arguments, then of the constants; outputs: memory for each result (null for a forwarded
//    one); arena: scratch memory of `arena_bytes` (null if 0), 64-byte aligned, undefined contents.
//  * forward[o] = i: output o plainly is input i; it shares the memory, and the program does not write it.
//  * alias[o] = i: output o may take over the memory of the donated input i, if that is not shared with anyone else.
//    The program must be right for outputs[o] == inputs[i] and for memory of its own.
//  * A donated input is deleted by the run, also if that fails.
//  * With `release_gil`, the GIL is released while the program runs (always if it has host calls, which may come from
//    any of its threads). Inputs stay alive, even when another thread deletes them meanwhile.
//  * With `apart` calls from the main thread run on a thread of their own (apart.h), so that Ctrl-C is heard at once even
//    in library calls, which cannot be stopped.
//  * With `libraries` the program calls libraries, which forks wait for (fork_gate.h); so may plans.
//  * With `plan` there is no machine code: the steps of a plan (plan.h) run instead.
//  * With `blocks` the machine code is a kernel for blocks of elementwise operands of any size (blocks.h).
//  * A nonzero return code raises what the host call raised, KeyboardInterrupt (2) or RuntimeError.
#pragma once
#include <vector>

#include <memory>

#include "arrays/array.h"
#include "programs/blocks.h"
#include "programs/host_call.h"
#include "programs/plan.h"

namespace pb {

struct Program {
    int (*function)(void**, void**, void*) = nullptr;  // null: `plan` is run
    std::unique_ptr<Plan> plan;
    std::unique_ptr<Blocks> blocks;
    std::vector<AvalInfo*> in, out;       // counted as users
    std::vector<HostRecord*> host_calls;  // owned
    std::vector<int64_t> forward, alias;  // per output; -1: none
    std::vector<int64_t> donate;
    std::vector<Array*> constants;  // kept alive by Executable::constants
    size_t arena_bytes = 0;
    // Of the memory of arguments that are not Arrays: what NumPy's have; none of our code asks for more.
    static constexpr size_t kInputAlignment = 16;
    bool release_gil = false, interruptible = false, apart = false, libraries = false;
};

struct Executable {
    PyObject_HEAD Program* program;
    PyObject *in_avals, *out_avals, *constants, *keepalive, *name;  // strong
    PyObject* placing;  // strong or null: what the hook `placement` goes by (placement.h)
    bool places;        // the program itself says where some value shall lie
    PyObject* weakrefs;
};

extern PyTypeObject* executable_type;
inline bool is_executable(PyObject* object) { return Py_TYPE(object) == executable_type; }

struct Arguments;

// Runs the program on arguments (call_arguments.h) in the layouts of its avals, which the caller keeps alive. Fills
// `outputs` with new references, or returns false with an error set.
bool execute(Executable* executable, const Arguments& arguments, PyObject** outputs);

// The same for a program with blocks on operands of another shape than those it was made for, all of which but scalars have
// `dims`.
bool execute_sized(Executable* executable, int ndim, const npy_intp* dims, const Arguments& arguments,
                   PyObject** outputs);

bool add_executable_type(PyObject* module);

}  // namespace pb
