"""How arrays lie on devices: meshes, partition specs and shardings. Data only; what moves arrays reads them."""

from pullback.manual import add_pages as _add_pages
from pullback.manual.sharding import PAGES as _PAGES
from pullback.sharding._current import (
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    get_mesh,
    reshard,
    set_mesh,
    use_abstract_mesh,
)
from pullback.sharding._mesh import AbstractDevice, AbstractMesh, AxisType, ManualAxisType, Mesh
from pullback.sharding._shardings import (
    DuplicateSpecError,
    IndivisibleError,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)
from pullback.sharding._specs import PartitionSpec
from pullback.util.absent import absent_names, listed

__getattr__ = absent_names(__name__)

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding", "PartitionSpec",
    "Sharding", "SingleDeviceSharding", "DuplicateSpecError", "IndivisibleError", "auto_axes", "explicit_axes",
    "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh",
]  # fmt: skip

_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
