"""Exceptions. Each has the message of the Rust library."""


class TamisError(Exception):
    """The base of all exceptions that are specific to this package."""


class ArgumentError(TamisError, ValueError):
    """An argument is outside its range, or no filter reaches the rate."""


class KeyTypeError(TamisError, TypeError):
    """The value is no key, or the filter has keys of another type."""


class MismatchError(TamisError, ValueError):
    """Two filters differ in a setting, so they cannot be merged."""


class UnsupportedError(TamisError):
    """This kind of filter has no such operation."""


class ReadOnlyError(TamisError):
    """The filter is a memory map of a file; a copy can be changed."""


class FormatError(TamisError, ValueError):
    """The bytes are no filter, were changed or cut, or are of a newer release."""


class BusyError(TamisError, TimeoutError):
    """Another process is changing the file."""


# The name in tracebacks and pickles is the public one.
for _error in [TamisError, *TamisError.__subclasses__()]:
    _error.__module__ = "tamis"
