#include "programs/functions.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "numpy_api.h"
#include <numpy/ufuncobject.h>

namespace pb {
namespace {

constexpr int64_t kChunk = 256;  // elements that are gathered at a time where there are gaps
constexpr int64_t kWidest = 16;  // bytes of an element

// What a ufunc of NumPy's refers to: as long as the process lives.
struct FunctionLoop {
    std::string name;
    FunctionKernel* kernel;
    int operands;  // the result among them
    npy_intp fewest = kFewest;  // elements that the kernel computes at least: those of a vector
    npy_intp sizes[kMostOperands];
    char types[kMostOperands];
    PyUFuncGenericFunction function;
    void* data;
};

struct alignas(8) Widest {
    uint64_t low, high;
};

// Calls task(T()) for an unsigned T of so many bytes: copies of sizes that the compiler knows are single moves.
template <typename Task>
void of_size(npy_intp size, Task&& task) {
    if (size == 4) task(uint32_t());
    else if (size == 8) task(uint64_t());
    else task(Widest());
}

// `count` elements from `from` on, then the first again up to `fewest`.
void gather_numbers(char* to, const char* from, npy_intp count, npy_intp step, npy_intp size, npy_intp fewest) {
    of_size(size, [&](auto number) {
        using T = decltype(number);
        T* target = reinterpret_cast<T*>(to);
        for (npy_intp i = 0; i < count; ++i) memcpy(target + i, from + i * step, sizeof(T));
        const T first = *target;
        for (npy_intp i = count; i < fewest; ++i) target[i] = first;
    });
}

void fill_numbers(char* to, const char* from, npy_intp count, npy_intp size) {
    of_size(size, [&](auto number) {
        using T = decltype(number);
        T* target = reinterpret_cast<T*>(to);
        memcpy(target, from, sizeof(T));
        const T first = *target;
        for (npy_intp i = 1; i < count; ++i) target[i] = first;
    });
}

void scatter_numbers(char* to, const char* from, npy_intp count, npy_intp step, npy_intp size) {
    of_size(size, [&](auto number) {
        using T = decltype(number);
        for (npy_intp i = 0; i < count; ++i) memcpy(to + i * step, from + i * npy_intp(sizeof(T)), sizeof(T));
    });
}

// A loop of NumPy's. Where an operand has gaps, and where there are too few elements, it goes through memory of its own.
void run_function(char** args, const npy_intp* dimensions, const npy_intp* steps, void* data) {
    const FunctionLoop& loop = *static_cast<const FunctionLoop*>(data);
    const int operands = loop.operands, last = operands - 1;
    const npy_intp count = dimensions[0], fewest = loop.fewest;
    void* at[kMostOperands];
    bool gaps[kMostOperands], any = false;
    for (int k = 0; k < operands; ++k) any |= gaps[k] = steps[k] != loop.sizes[k];
    if (!any && count >= fewest) {
        for (int k = 0; k < operands; ++k) at[k] = args[k];
        call_kernel(loop.kernel, operands, count, at);
        return;
    }
    alignas(64) char memory[kMostOperands][kChunk * kWidest];
    const bool few = count < fewest;
    for (int k = 0; k < last; ++k)
        if (steps[k] == 0 && count) {  // one number for all
            gaps[k] = false;
            fill_numbers(memory[k], args[k], few ? fewest : std::min<npy_intp>(count, kChunk), loop.sizes[k]);
        }
    for (npy_intp start = 0; start < count; start += kChunk) {
        npy_intp length = std::min<npy_intp>(kChunk, count - start);
        // The last few are done with some before them, if there are any.
        if (length < fewest && start) {
            start -= fewest - length;
            length = fewest;
        }
        for (int k = 0; k < operands; ++k) {
            char* from = args[k] + start * steps[k];
            const bool direct = !gaps[k] && !few && (k == last || steps[k]);
            at[k] = direct ? from : memory[k];
            if (direct || k == last || !steps[k]) continue;
            gather_numbers(memory[k], from, length, steps[k], loop.sizes[k], fewest);
        }
        call_kernel(loop.kernel, operands, length, at);
        if (at[last] == memory[last])
            scatter_numbers(args[last] + start * steps[last], memory[last], length, steps[last], loop.sizes[last]);
    }
}

// How many elements the kernel writes where one is asked for.
npy_intp fewest_of(const FunctionLoop& loop) {
    alignas(64) char memory[kMostOperands][kFewest * kWidest] = {};
    void* at[kMostOperands];
    for (int k = 0; k < loop.operands; ++k) at[k] = memory[k];
    const int last = loop.operands - 1;
    constexpr char kUntouched = 0x55;
    memset(memory[last], kUntouched, sizeof memory[last]);
    call_kernel(loop.kernel, loop.operands, 1, at);
    npy_intp bytes = sizeof memory[last];
    while (bytes && memory[last][bytes - 1] == kUntouched) --bytes;
    return (bytes + loop.sizes[last] - 1) / loop.sizes[last];
}

PyObject* function_of_kernel(PyObject*, PyObject* args) {
    const char* name;
    unsigned long long address;
    PyObject *types, *owner;
    if (!PyArg_ParseTuple(args, "sKO!O:function_of_kernel", &name, &address, &PyTuple_Type, &types, &owner)) return nullptr;
    Py_ssize_t operands = PyTuple_GET_SIZE(types);
    if (operands < 2 || operands > kMostOperands || !address)
        return PyErr_Format(PyExc_ValueError, "function_of_kernel: %zd types; expected 2 to %d, and an address", operands,
                            kMostOperands);
    auto loop = std::make_unique<FunctionLoop>();
    loop->name = name;
    loop->kernel = reinterpret_cast<FunctionKernel*>(address);
    loop->operands = int(operands);
    for (Py_ssize_t k = 0; k < operands; ++k) {
        PyObject* type = PyTuple_GET_ITEM(types, k);
        if (!PyArray_DescrCheck(type)) return PyErr_Format(PyExc_TypeError, "function_of_kernel: %R is no dtype", type);
        auto* descr = reinterpret_cast<PyArray_Descr*>(type);
        npy_intp size = PyDataType_ELSIZE(descr);
        if (size != 4 && size != 8 && size != 16)
            return PyErr_Format(PyExc_ValueError, "function_of_kernel: elements of %zd bytes", Py_ssize_t(size));
        loop->sizes[k] = size;
        loop->types[k] = char(descr->type_num);
    }
    loop->fewest = fewest_of(*loop);
    loop->function = run_function;
    loop->data = loop.get();
    PyObject* made = PyUFunc_FromFuncAndData(&loop->function, &loop->data, loop->types, 1, int(operands) - 1, 1, PyUFunc_None,
                                             loop->name.c_str(), nullptr, 0);
    if (!made) return nullptr;
    Py_INCREF(owner);  // a ufunc's loops may be held by plans after it is gone
    loop.release();
    return made;
}

PyMethodDef function_methods[] = {
    {"function_of_kernel", function_of_kernel, METH_VARARGS,
     "function_of_kernel(name, address, types, owner)\n--\n\nA ufunc whose only loop runs the kernel of a function."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_functions(PyObject* module) {
    return _import_umath() >= 0 && PyModule_AddFunctions(module, function_methods) == 0;
}

}  // namespace pb
