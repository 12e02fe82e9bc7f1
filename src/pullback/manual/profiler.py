"""Pages of profiles."""

LOG_DIR = """    log_dir: folder; the files lie below its `plugins/profile/<time>`.
    create_perfetto_link: whether to print an address that shows the trace, and to wait for the browser.
    create_perfetto_trace: whether `perfetto_trace.json.gz` is written, too.
    profiler_options: ProfileOptions; None for the usual ones."""

TRACED = """>>> import pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as folder:"""

PAGES = {
    "start_trace": f"""
Arguments:
{LOG_DIR}
Returns:
    None.
Raises:
    RuntimeError while another trace is recorded; TypeError for options of another class.

{TRACED}
...     jax.profiler.start_trace(folder)
...     x = jax.jit(jnp.sin)(jnp.ones(3)).block_until_ready()
...     jax.profiler.stop_trace()
...     len(list(pathlib.Path(folder).rglob("*.trace.json.gz")))
1
""",
    "stop_trace": f"""
Returns:
    None.
Raises:
    RuntimeError if no trace is recorded; OSError if the files cannot be written.

{TRACED}
...     jax.profiler.start_trace(folder)
...     jax.profiler.stop_trace()
...     len(list(pathlib.Path(folder).rglob("*.xplane.pb")))
1
""",
    "trace": f"""
Arguments:
{LOG_DIR}
Returns:
    Context manager.
Raises:
    RuntimeError while another trace is recorded; TypeError for options of another class; OSError for the files.

{TRACED}
...     with jax.profiler.trace(folder):
...         for i in range(10):
...             with jax.profiler.StepTraceAnnotation("step", step_num=i):
...                 x = jax.jit(jnp.sin)(jnp.ones(3)).block_until_ready()
...     sorted(path.suffix for path in pathlib.Path(folder).rglob("*.*"))
['.gz', '.pb']
""",
    "annotate_function": """
Arguments:
    func: function.
    name: name of the spans; None for the function's.
    decorator_kwargs: metadata of the spans, by name.
Returns:
    Function like func.
Raises:
    What func raises.

>>> @jax.profiler.annotate_function
... def load(path):
...     return path.upper()
>>> load("a")
'A'
""",
    "start_server": """
Arguments:
    port: integer.
    requires_backend: has no effect.
Returns:
    Nothing: it raises.
Raises:
    NotImplementedError.

>>> try:
...     jax.profiler.start_server(9999)
... except NotImplementedError as error:
...     print(str(error)[:18])
start_server(9999)
""",
    "stop_server": """
Returns:
    Nothing: it raises.
Raises:
    ValueError.

>>> try:
...     jax.profiler.stop_server()
... except ValueError as error:
...     print(error)
No active profiler server.
""",
    "device_memory_profile": """
Arguments:
    backend: None or 'cpu'.
Returns:
    bytes, compressed by gzip.
Raises:
    ValueError for another backend.

>>> jax.profiler.device_memory_profile()[:2]
b'\\x1f\\x8b'
""",
    "save_device_memory_profile": """
Arguments:
    filename: path of the file.
    backend: None or 'cpu'.
Returns:
    None.
Raises:
    ValueError for another backend; OSError if the file cannot be written.

>>> import os, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     jax.profiler.save_device_memory_profile(os.path.join(folder, "memory.prof"))
...     os.listdir(folder)
['memory.prof']
""",
    "ProfileOptions": """
>>> options = jax.profiler.ProfileOptions()
>>> options.host_tracer_level = 0  # kernels only
>>> options.device_tracer_level
1
""",
    "TraceAnnotation": """
Arguments:
    name: text that viewers show.
    kwargs: metadata by name.

>>> with jax.profiler.TraceAnnotation("load", file="a.csv"):
...     x = jnp.ones(3)
""",
    "StepTraceAnnotation": """
Arguments:
    name: text that viewers show.
    kwargs: metadata by name; step_num is the number of the step.

>>> for i in range(2):
...     with jax.profiler.StepTraceAnnotation("train", step_num=i):
...         x = jnp.ones(3)
""",
}
