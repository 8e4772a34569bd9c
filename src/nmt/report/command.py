"""`nmt report`: write a page about a run, or a comparison of several runs."""

from nmt.config.keys import plain_name
from nmt.config.tree import Config
from nmt.report.comparison import as_text, by_name, compare_scores, comparison
from nmt.report.page import build_section, report
from nmt.report.run import read_run
from nmt.runs.layout import RunLayout
from nmt.text.lines import STANDARD, open_output


def run(config: Config) -> None:
    """Write the page and print its path; of a comparison, print the scores and the settings that differ, too."""
    runs = [read_run(config, entry) for entry in config.compare or [config.name]]
    if names := config.compare:
        compared = by_name(runs)
        scores = build_section(lambda: compare_scores(compared))
        print(as_text(compared, scores))
        page, others = comparison(compared, scores), "-".join(name.replace("/", "-") for name in names[1:])
        usual_path = runs[0].folder / f"compared-{plain_name(others)}.html"
    else:
        page, usual_path = report(runs[0], config.checkpoint), RunLayout(config.run_folder).report
    output = str(usual_path) if config.output == STANDARD else config.output
    with open_output(output) as file:
        file.write(page.encode())
    print(f"report: {output}")
