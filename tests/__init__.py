"""The tests of CSP; a package, so that equal file names in its folders do not clash."""
