"""What can go wrong with a study on purpose: a bad file, a folder that cannot be used, workers that are gone."""

from aftereffect.core.errors import AftereffectError, InvalidArgument


class InvalidStudy(InvalidArgument):
    """A study breaks a rule; the message names the file (if any), the key, the rule and the value."""


class FolderUnusable(AftereffectError):
    """A study's folder cannot be written to, is in use by another run, or holds a file that cannot be read."""


class ExecutorBroken(AftereffectError):
    """The executor is gone and took unfinished cells with it; what was finished is stored, so run again."""
