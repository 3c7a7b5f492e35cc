//! Detects compiler features beyond the oldest supported version, and names
//! the instruction sets that are part of the target.

fn main() {
    // AVX-512 intrinsics and target features. Older compilers build without
    // that backend.
    autocfg::emit_possibility("rustc_1_89");
    autocfg::new().emit_rustc_version(1, 89);
    let target = |name: &str| {
        std::env::var(format!("CARGO_CFG_{name}")).unwrap_or_default()
    };
    let features = target("TARGET_FEATURE");
    let has = |feature| features.split(',').any(|has| has == feature);
    // miri has no inline assembly and few intrinsics. `tamis_scalar`, for
    // measurements, leaves the portable operations.
    let native = ["MIRI", "TAMIS_SCALAR"]
        .iter()
        .all(|name| std::env::var_os(format!("CARGO_CFG_{name}")).is_none());
    for (arch, feature) in [("aarch64", "neon"), ("wasm32", "simd128")] {
        autocfg::emit_possibility(feature);
        // Lanes are numbered from the other end on big-endian Arm.
        let fits = target("TARGET_ARCH") == arch
            && target("TARGET_ENDIAN") == "little";
        if native && fits && has(feature) {
            autocfg::emit(feature);
        }
    }
    autocfg::rerun_path("build.rs");
}
