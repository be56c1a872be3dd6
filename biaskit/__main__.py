"""`python -m biaskit`, and the console script."""

from biaskit.cli import main

if __name__ == "__main__":
    main()
