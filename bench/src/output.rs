//! Output that tolerates a closed pipe, as in `... | head`.

use std::error::Error;
use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Writes to standard output; unlike `print!`, a closed pipe is an error
/// and no panic.
pub(crate) fn print(text: &str) -> std::io::Result<()> {
    std::io::stdout().write_all(text.as_bytes())
}

/// Writes to standard error, if it is open.
pub(crate) fn note(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Exit code of a binary; an output closed by its reader is no failure.
pub(crate) fn exit_code(name: &str, result: Result<(), Failure>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let io = error.downcast_ref::<std::io::Error>();
    if io.is_some_and(|io| io.kind() == ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    note(&format!("{name}: {error}\n"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::process::ExitCode;

    use super::exit_code;

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let code = |kind| exit_code("test", Err(Error::from(kind).into()));
        let text = |code: ExitCode| format!("{code:?}");
        let success = text(ExitCode::SUCCESS);
        assert_eq!(text(code(ErrorKind::BrokenPipe)), success);
        assert_ne!(text(code(ErrorKind::NotFound)), success);
    }
}
