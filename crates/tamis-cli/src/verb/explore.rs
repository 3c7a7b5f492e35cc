//! `tamis explore`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Exit, Failure, Result};
use crate::verb::print_line;

/// Plan filters with sliders in a browser
///
/// Writes a page that needs no other file, no server and no network, prints
/// its path and opens it. The page computes the numbers of `plan` and
/// `theory` for any number of keys, rate, memory and share of misses, and
/// shows the command line of `build`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Page to write, not opened; an existing file is replaced
    /// [default: tamis-explorer.html in the directory of temporary files]
    #[arg(short, long, value_name = "FILE.html", value_parser = parse_html)]
    output: Option<PathBuf>,

    /// Only print the path of the page
    #[arg(long, conflicts_with = "output")]
    no_open: bool,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit> {
        let default = || std::env::temp_dir().join("tamis-explorer.html");
        let path = self.output.clone().unwrap_or_else(default);
        write(&path)
            .map_err(|error| Failure::file(&path, &tamis::Error::Io(error)))?;
        print_line(&path.display().to_string())?;
        if self.output.is_none() && !self.no_open && !open(&path) {
            return Err(Failure::new(format_args!(
                "{}: no program opens it here (open it in a browser)",
                path.display()
            )));
        }
        Ok(Exit::Success)
    }
}

/// Replaces the file atomically. The directory of temporary files belongs to
/// all users: another user's file or link of this name is not written to.
fn write(path: &Path) -> std::io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As of any new file: the process's mask applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(tamis_explorer::page().as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// Starts the program of the system for web pages.
fn open(path: &Path) -> bool {
    let (program, arguments): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A page replaces an existing file, so other extensions are refused: a
/// mistake must not overwrite a filter.
fn parse_html(text: &str) -> std::result::Result<PathBuf, String> {
    let path = Path::new(text);
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html")) {
        Ok(path.to_owned())
    } else {
        Err("expected a file name with the extension .html".into())
    }
}
