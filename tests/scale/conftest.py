"""Ray and Spark are tested where they are installed; `.ci/scale` installs them. The report says which."""

import importlib.util
import shutil

RAY = importlib.util.find_spec("ray") is not None
SPARK = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None

collect_ignore = [
    *([] if RAY else ["test_on_ray.py"]),
    *([] if SPARK else ["test_on_spark.py"]),
]
