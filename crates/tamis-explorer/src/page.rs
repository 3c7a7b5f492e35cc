//! The planner as a part of a page, and the page of `tamis explore`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const FRAME: &str = include_str!("../page/frame.html");
const PLANNER: &str = include_str!("../page/planner.html");
const SCRIPT: &str = include_str!("../page/planner.js");
/// Built by `cargo xtask explorer`.
const MODULE: &[u8] = include_bytes!("../explorer.wasm");

/// Style sheet of a page with a [`planner`]: colours of both schemes, text,
/// and the planner.
pub const STYLE: &str = concat!(
    include_str!("../page/base.css"),
    include_str!("../page/planner.css")
);

/// A section with sliders, curves and the recommended command, its script and
/// the module. It needs [`STYLE`] and no other file. Its names begin with
/// `plan`.
///
/// ```
/// let planner = tamis_explorer::planner();
/// assert!(planner.starts_with("<section class=\"planner\""));
/// // WebAssembly begins with these bytes.
/// assert!(planner.contains("AGFzbQEAAAA"));
/// ```
pub fn planner() -> String {
    let module = STANDARD.encode(MODULE);
    let script = SCRIPT.replacen("MODULE_IN_BASE64", &module, 1);
    format!("{PLANNER}<script>\n{script}</script>\n")
}

/// The page, which needs no other file and no server.
///
/// ```
/// let page = tamis_explorer::page();
/// assert!(page.starts_with("<!doctype html>"));
/// assert!(page.contains(&tamis_explorer::planner()));
/// ```
pub fn page() -> String {
    let page = FRAME.replacen("STYLE", STYLE, 1);
    page.replacen("PLANNER", &planner(), 1)
}
