//! Tells the crate what the compiler can do beyond the oldest supported one.

fn main() {
    // AVX-512 intrinsics and target features. Older compilers do without
    // that backend.
    autocfg::emit_possibility("rustc_1_89");
    autocfg::new().emit_rustc_version(1, 89);
    autocfg::rerun_path("build.rs");
}
