"""Which version of a package is here, under whatever name it was installed."""

import sys
from importlib import metadata


def distribution_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def version_of(package: str) -> str | None:
    """The version of what `import` finds, whatever distribution brought it: tf-nightly is TensorFlow, too."""
    from packaging.version import Version

    loaded = getattr(sys.modules.get(package), "__version__", None)
    found = loaded or distribution_version(package) or next(brought(package), None)
    # One spelling, since 2.23.0-dev20261026 and 2.23.0.dev20261026 are one version.
    return found and str(Version(found))


def brought(package: str):
    """The versions of the distributions that have this package, looked up in what each has installed."""
    return map(distribution_version, metadata.packages_distributions().get(package, ()))
