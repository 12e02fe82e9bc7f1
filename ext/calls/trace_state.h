// What a thread's calls depend on beside their arguments: whether it is tracing, and the configuration in force.
//
// The configuration is represented by tokens: any hashable Python object; equal tokens mean the same configuration.
// Tokens are interned here for ever, so that keys compare them by address. There is one for the process and one for
// each thread.
#pragma once
#include <Python.h>

#include <cstdint>

namespace pb {

struct TraceState {
    bool tracing = false;              // an interpreter other than plain evaluation is current, or calls are watched
    bool watched = false;              // nothing of the kind, but somebody looks at calls, which go through Python, too
    bool remembers = false;            // that transforms concrete values, by remembered functions where there are any
    bool has_mesh = false;             // a mesh of devices is in force, on which results lie
    double asked_work = 0;             // elements that calls like the one whose miss() runs have handled
    PyObject* thread_token = nullptr;  // interned (never freed) or null
    bool has_home = false;             // the thread says itself where its new arrays lie
    PyObject* home = nullptr;          // the device, which lives for ever; null: the first one
};

// The state of the calling thread. Needs no GIL for `tracing`; tokens are read with the GIL held.
extern thread_local TraceState trace_state;
extern PyObject* process_token;  // interned or null
extern PyObject* process_home;   // where new arrays lie in threads that do not say it; as `home`

// The device on which arrays lie that the calling thread makes and commits to none; null for the first one.
inline PyObject* home_of_new_arrays() { return trace_state.has_home ? trace_state.home : process_home; }

// How many traces have begun in this process, modulo 2^31. Arrays note it when they are made, so that a trace knows the
// numbers that it made arrays of itself from what was there before. Guarded by the GIL.
extern uint32_t traces_begun;

// ImportError and false in a subinterpreter: arrays, tables and threads belong to the process, and the lock of one
// interpreter guards them from no other.
bool check_main_interpreter();

// check_main_interpreter(), set_tracing(bool or 2), begin_trace(), set_has_mesh(bool), set_home(device or None, bool,
// device or None), set_trace_context_token(token), set_thread_context_token(token or None)
bool add_trace_state(PyObject* module);

}  // namespace pb
