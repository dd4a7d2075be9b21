"""The programs that Tenor is compared with, as a user would write them without Tenor, and code to run them."""
