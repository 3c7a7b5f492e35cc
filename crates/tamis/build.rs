//! Detects compiler features beyond the oldest supported version.

fn main() {
    // AVX-512 intrinsics and target features. Older compilers build without
    // that backend.
    autocfg::emit_possibility("rustc_1_89");
    autocfg::new().emit_rustc_version(1, 89);
    autocfg::rerun_path("build.rs");
}
