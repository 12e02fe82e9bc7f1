"""Pages of foreign functions."""

# A function in C would be compiled; one that ctypes makes does for examples.
DOUBLE = """>>> import ctypes
>>> floats = ctypes.POINTER(ctypes.c_float)
>>> @ctypes.CFUNCTYPE(None, floats, ctypes.POINTER(floats))
... def double(out, operands):
...     out[0] = 2 * operands[0][0]"""
CALLED = """>>> f = jax.ffi.ffi_call("double", jax.ShapeDtypeStruct((), jnp.float32), custom_call_api_version=1)
>>> jax.jit(f)(jnp.float32(3.0))
Array(6., dtype=float32)"""
NAME = "    name: text by which programs call it."
PLATFORM = "    platform: 'cpu'; what is registered for another platform is never called."

PAGES = {
    "ffi_call": f"""
Arguments:
    target_name: name of a registered function.
    result_shape_dtypes: ShapeDtypeStruct, or what else has shape and dtype, of the result; a sequence for several.
    has_side_effect: whether it is called even if no result is used.
    vmap_method: what vmap does, as of `pure_callback`: None, 'sequential', 'expand_dims', 'broadcast_all', ...
    input_layouts, output_layouts: for each array None (row by row) or its axes, slowest first.
    input_output_aliases: dictionary from numbers of operands to those of results that share their memory.
    custom_call_api_version: 4 for XLA's typed interface, 1 for plain functions `void f(void* out, const void** in)`.
    legacy_backend_config: must be None.
Returns:
    Function of arrays, and of attributes by name: strings, numbers (int is int64, float is float64), NumPy arrays,
    and dictionaries of them. It gives an array, or as many as there are results.
Raises:
    ValueError for results without shape, other layouts, aliases of unlike arrays, an unknown vmap_method.
    JaxRuntimeError when the program runs, with what the function reported, or if nothing has the name.

{DOUBLE}
>>> jax.ffi.register_ffi_target("double", jax.ffi.pycapsule(double), api_version=0)
{CALLED}
""",
    "register_ffi_target": f"""
Arguments:
{NAME}
    fn: PyCapsule of its address, as of `pycapsule`; or a dictionary of them by stage: 'instantiate', 'prepare',
        'initialize' and 'execute', of which the last must be there.
{PLATFORM}
    api_version: 1 for XLA's typed interface, 0 for a plain function `void f(void* out, const void** in)`.
    kwargs: none are accepted.
Returns:
    None.
Raises:
    JaxRuntimeError for what is no capsule, and where the name has another function.

{DOUBLE}
>>> jax.ffi.register_ffi_target("twice", jax.ffi.pycapsule(double), api_version=0)
>>> f = jax.ffi.ffi_call("twice", jax.ShapeDtypeStruct((), jnp.float32), custom_call_api_version=1)
>>> f(jnp.float32(2.0))
Array(4., dtype=float32)
""",
    "pycapsule": """
Arguments:
    funcptr: function of ctypes: of a library, or made by CFUNCTYPE.
Returns:
    PyCapsule.
Raises:
    TypeError for what is no function of ctypes.

>>> import ctypes
>>> type(jax.ffi.pycapsule(ctypes.CFUNCTYPE(None)(lambda: None))).__name__
'PyCapsule'
""",
    "register_ffi_type": f"""
Arguments:
{NAME}
    type_registration: dictionary with 'type_id', a PyCapsule of an XLA_FFI_TypeId, and perhaps 'type_info', one of an
        XLA_FFI_TypeInfo.
{PLATFORM}
Returns:
    None.
Raises:
    ValueError for a dictionary with other keys; JaxRuntimeError where the name has another id.

>>> import ctypes
>>> number = ctypes.c_int64(0)  # it gets the id
>>> jax.ffi.register_ffi_type("my_state", {{"type_id": jax.ffi.pycapsule(ctypes.pointer(number))}})
>>> number.value > 0
True
""",
    "register_ffi_type_id": f"""
Arguments:
{NAME}
    obj: PyCapsule of an XLA_FFI_TypeId.
{PLATFORM}
Returns:
    None.
Raises:
    JaxRuntimeError where the name has another id.

>>> import ctypes
>>> number = ctypes.c_int64(0)  # it gets the id
>>> jax.ffi.register_ffi_type_id("my_other_state", jax.ffi.pycapsule(ctypes.pointer(number)))
>>> number.value > 0
True
""",
    "register_ffi_target_as_batch_partitionable": """
Arguments:
    name: text by which programs call the function.
Returns:
    None.
Raises:
    TypeError for a name that is no string.

>>> jax.ffi.register_ffi_target_as_batch_partitionable("double")
""",
    "ffi_lowering": """
Arguments:
    call_target_name: name of a registered function.
    operand_layouts, result_layouts: for each array None or its axes, fastest first.
    backend_config: must be None.
    skip_ffi_layout_processing: must be False.
    lowering_args: none are accepted.
Returns:
    Rule for `jax.interpreters.mlir.register_lowering`.
Raises:
    NotImplementedError for what only MLIR can take.

>>> jax.ffi.ffi_lowering("double").target_name
'double'
""",
    "include_dir": """
Returns:
    str.

>>> import os
>>> os.path.exists(os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
True
""",
}
