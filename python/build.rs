//! Sets `Py_GIL_DISABLED` for free-threaded interpreters.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
