"""Here `import jax` is pullback, as it is for users who call install_as_jax() first."""

import pullback

pullback.install_as_jax()
