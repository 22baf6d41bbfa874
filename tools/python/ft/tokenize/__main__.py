"""python -m ft.tokenize: the program ft-tokenize."""
import sys

from .command import main

sys.exit(main())
