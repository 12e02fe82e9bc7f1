"""Where the time of a program goes, as one page: `pullback.report(f, *args)`.

found = pullback.report(f, *args)           # writes report.html; in a notebook, the page is shown
print(found)                                # the same in a few lines
"""

from pullback.reports.report import Report, report

__all__ = ["Report", "report"]
