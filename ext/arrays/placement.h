// Where the results of a run lie: on the devices of the arguments that are committed to some.
//
// Arrays of one machine share its memory, so this moves nothing; it is what results say of themselves, and the error for
// arguments that lie on different devices. The common cases, no argument committed or all to one device, are decided
// here; a mesh, or a program that says where its values shall lie, is for the hook `placement`. Where results are left to
// be summed over a mesh, it also gives the function that finds what each device has of them.
#pragma once
#include "calls/call_arguments.h"
#include "programs/executable.h"
#include "ref.h"

namespace pb {

class Placement {
  public:
    // Decides for a run of the program on these arguments. False with an error set (ValueError for incompatible devices).
    bool find(Executable* executable, const Arguments& arguments, size_t outputs);
    // Tells the results; false with an error set.
    bool apply(PyObject** outputs, size_t count) const {
        for (size_t o = 0; o < count; ++o) {
            Array* result = as_array(outputs[o]);
            PyObject* place = each_ ? PyTuple_GET_ITEM(each_.get(), Py_ssize_t(o)) : same_.get();
            if (place == Py_None) place = nullptr;
            if (result->device != place) Py_XSETREF(result->device, Py_XNewRef(place));
        }
        return !given_ || give_terms(outputs, count);
    }

  private:
    bool take_arguments(Executable* executable, const Arguments& arguments);
    bool give_terms(PyObject** outputs, size_t count) const;

    Ref same_, each_;  // the device of all results, or null; a tuple with the place of each
    Ref given_;        // where results are left to be summed: the arguments, which the last of the tuple is called with
};

}  // namespace pb
