from pullback._ext import _core
