"""The tests of the whiteboard's index."""

import os

# As in the product: threads of numpy that wait for each other on a busy machine make it many times slower.
# numpy reads this when it is first imported, which the modules of this folder do.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
