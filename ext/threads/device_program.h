// DeviceProgram: an Executable that several devices run at once, each on its part of the arguments.
//
// The executable is the program of one device. A mapped input is an array with a leading axis, of which device d gets
// element d; an input that is not mapped goes to all as it is. Results are put together likewise; of one that is not
// mapped the device 0 gives the value. `sharding`, one object for each result, is what the array says of where it lies.
#pragma once
#include <Python.h>

namespace pb {

// DeviceProgram(executable, size, mapped_in, out_avals, mapped_out, shardings, communication=None); program(list of
// Arrays) -> list. `communication` (collectives/collectives.h) says what its collective operations are.
// What a device raises is raised, of several the lowest device's; RuntimeError where devices wait for each other in vain.
bool add_device_program_type(PyObject* module);

}  // namespace pb
