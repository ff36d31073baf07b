"""``python -m volery`` is the program ``volery``."""

from volery._program import main

if __name__ == "__main__":
    main()
