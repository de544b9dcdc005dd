"""The installed version of a package, whatever distribution it was installed from."""

import sys
from importlib import metadata


def distribution_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def version_of(package: str) -> str | None:
    """Returns the version of what `import` finds, from any distribution: tf-nightly is TensorFlow, too."""
    from packaging.version import Version

    version = getattr(sys.modules.get(package), "__version__", None)
    version = version or distribution_version(package) or provided_version(package)
    # One spelling, since 2.23.0-dev20261026 and 2.23.0.dev20261026 are one version.
    return version and str(Version(version))


def provided_version(package: str) -> str | None:
    """Returns the version of the distribution that has a package of another name; this reads all that is installed."""
    providers = metadata.packages_distributions().get(package, ())
    return next(map(distribution_version, providers), None)


def version_name(tensorflow: str) -> str:
    """Returns 2.19 for 2.19.1; all nightlies have one name, since each replaces the one before."""
    from packaging.version import Version

    version = Version(tensorflow)
    return "nightly" if version.is_devrelease else f"{version.major}.{version.minor}"
