// Forks and libraries: before a fork, BLAS libraries stop their threads, and hang where one of these computes just then
// (OpenBLAS does, in the parent or in the child). So a fork waits until no call of ours into a library runs, and holds off
// new ones meanwhile.
#pragma once
#include <Python.h>

namespace pb {

// A call into a library, or a program that makes some. Made and destroyed with the GIL held, on one thread.
class LibraryCall {
  public:
    explicit LibraryCall(bool counts);
    ~LibraryCall();
    LibraryCall(const LibraryCall&) = delete;
    LibraryCall& operator=(const LibraryCall&) = delete;
    // From now on the call is that of another thread, which is where it will be destroyed. By its own thread, GIL held.
    void hand_over();

  private:
    bool counts_, is_own_ = true;
};

// call_library(function, operands, params): the same for a function of Python's, which runs as programs do
// (threads/float_mode.h).
// hold_libraries(seconds): waits until no other thread is in a library, at most so long; then none can enter until
// release_libraries(), or release_libraries_in_child(), which forgets the calls of threads that are not in the child.
bool add_fork_gate(PyObject* module);

}  // namespace pb
