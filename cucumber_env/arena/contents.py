"""What the report of a tournament says, in the order in which a sceptical reader asks.

A report is a mapping as `evaluate.py arena --json` writes it: how it was played, `against` and `pairs` as
`RoundRobin.to_dict` has them, `ranking`, `cycles`, `distribution`, `seer`, `suspects`, `audit` and `failures`. What
is missing or empty is said to be missing.
"""

from __future__ import annotations

from cucumber_env.arena.document import (
    Block,
    Bullets,
    Cell,
    Facts,
    Grid,
    Listing,
    Paragraph,
    Section,
    Text,
    Verbatim,
    all_named,
    counted,
    listed,
    minus,
    named,
    number,
    percent,
    place,
    printable,
    signed,
)
from cucumber_env.arena.pictures import distribution, matrix, pairs
from cucumber_env.arena.sheet import Report, Sheet
from cucumber_env.rules import FIELDS, RULES_VERSION, Rules


def title(report: Report) -> str:
    """What was played, in a line."""
    episodes = "rounds" if report["episode"] == "round" else "matches"
    return f"Tournament: {printable(report['rules_text'])}, {report['num_players']} players, {episodes}"


def sections(report: Report) -> list[Section]:
    """The report from the summary to the small print.

    Raises:
        ValueError: the report lacks what every report has.
    """
    sheet = Sheet(report)
    return [
        Section("summary", "In short", [Bullets(_summary(sheet))]),
        Section("played", "What was played", _played(sheet)),
        Section("ranking", "Ranking", _ranking(sheet)),
        Section("pairs", "Who is better than whom", pairs(sheet)),
        Section("matrix", "Payoff matrix", matrix(sheet)),
        Section("distribution", "What they paid" if sheet.lower else "Totals at the end", distribution(sheet)),
        Section("seer", "Beside an agent that sees all cards", _seer(sheet)),
        Section("audit", "Gain from deviating", _audit(sheet)),
        Section("failures", "Failures", _failures(sheet)),
        Section("reading", "How to read this", [Bullets(_reading(sheet))]),
        Section("numbers", "All numbers", _numbers(sheet)),
    ]


def _summary(sheet: Sheet) -> list[Text]:
    report = sheet.report
    ranking, suspects = report.get("ranking", ()), {row["policy"] for row in report.get("suspects", ())}
    first = [row["policy"] for row in ranking if row["rank"][0] == 1]
    who = (*listed(all_named(first)), " ranks first, alone." if len(first) == 1 else " share the first place.")
    even = sum(sheet.decided(pair) == "even" for pair in sheet.pairs)
    all_pairs = counted(len(sheet.pairs), "pair")
    decided = f"{len(sheet.pairs) - even} of {all_pairs} told apart, each by its own {sheet.level} interval."
    seer = (
        counted(len(suspects), "policy comes", "policies come") + " suspiciously near to an agent that sees all cards."
    )
    if not suspects:
        seer = seer.replace("0 policies come", "No policy comes")
    if not {row["field"] for row in report.get("seer", ())} - set(report.get("unjudged", {})):
        seer = "Nobody could be judged beside an agent that sees all cards."
    failures = report.get("failures", ())
    return [
        who if first else ("No ranking was made.",),
        (decided,),
        (f"{counted(len(report.get('cycles', ())), 'cycle')} of policies that beat each other in a circle.",)
        if report.get("cycles")
        else ("No cycles: no policies beat each other in a circle.",),
        (seer if report.get("seer") else "Not compared with an agent that sees all cards.",),
        _best_audit(sheet),
        (f"{counted(len(failures), 'table')} ended by an error of a policy." if failures else "No table failed.",),
    ]


def _best_audit(sheet: Sheet) -> Text:
    rows = sheet.report.get("audit", ())
    if not rows:
        return ("No best responses were sought: how far a policy can be exploited is unknown.",)
    worst = max(rows, key=lambda row: row["at_least"])
    gain = f"{minus(worst['at_least'])}{sheet.unit} per {sheet.report['episode']}."
    return ("Largest gain found for one who deviates: against ", named(worst["policy"]), f", at least {gain}")


def _played(sheet: Sheet) -> list[Block]:
    report = sheet.report
    seats, deals = report["num_players"], report["deals"]
    episode = "one round" if report["episode"] == "round" else "a whole match"
    score = "mean penalty in points, lower is better" if sheet.lower else "mean outcome, −1 to 1, higher is better"
    versions = ", ".join(f"{printable(str(name))} {value}" for name, value in report.get("versions", {}).items())
    rows: list[tuple[str, Text]] = [
        ("Rules", (named(report["rules_text"]),)),
        ("Players", (f"{seats} at each table",)),
        ("Episode", (episode,)),
        ("Policies", listed(all_named(report["policies"]))),
        ("Tables", (f"one of each policy against {seats - 1} of each, and each among itself",)),
        ("Deals", (f"{deals:,} duplicate deals × {seats} rotations = {deals * seats:,} games at each table",)),
        ("Seed", (str(report["seed"]),)),
        ("Score", (score,)),
        ("Intervals", (f"{sheet.level} confidence, over deals",)),
        ("Versions", (versions or "not recorded",)),
    ]
    blocks: list[Block] = [Facts(rows), Paragraph(("The rules in force:",)), Bullets(_rules(report))]
    if report.get("command_line"):
        blocks += [Paragraph(("To play it again:",)), Listing(str(report["command_line"]))]
    return blocks


def _rules(report: Report) -> list[Text]:
    """The rules in words, or field by field if they are of another version."""
    if (
        report.get("versions", {}).get("rules", RULES_VERSION) == RULES_VERSION
        and report["rules"].keys() <= FIELDS.keys()
    ):
        return [(line,) for line in Rules.from_dict(report["rules"]).describe().splitlines()]
    return [(Verbatim(printable(f"{name}: {value}")),) for name, value in report["rules"].items()]


def _ranking(sheet: Sheet) -> list[Block]:
    rows = sheet.report.get("ranking", ())
    if not rows:
        return [Paragraph(("No ranking was made.",)), *_cycles(sheet)]
    lines: list[list[Cell]] = []
    for row in rows:
        skill = row.get("openskill")
        rating = [f"{minus(skill['mu'], 2)} ± {skill['sigma']:.2f}", minus(skill["ordinal"], 2)] if skill else ["–"] * 2
        lines.append([place(row["rank"]), named(row["policy"]), number(row["score"]), *rating])
    heads = ["rank", "policy", sheet.report["score"], "OpenSkill μ ± σ", "ordinal"]
    games = sheet.report.get("openskill_games")
    text = (
        f"Score: the mean {sheet.report['score']} over all fields with equal weights, its own among them. A rank such "
        "as 1–2 is a tie: any of these places is possible. ",
        str(sheet.report.get("beats", "")),
        f" OpenSkill rates {f'{games:,} of the' if games else 'the same'} games by who finished before whom; its "
        "ordinal is μ − 3σ.",
    )
    grid = Grid("The policies, best first", heads, lines, left=2)
    return [grid, *_unranked(sheet), Paragraph(text), *_mixed(sheet), *_cycles(sheet)]


def _unranked(sheet: Sheet) -> list[Block]:
    names = sheet.report.get("unranked", ())
    if not names:
        return []
    return [Paragraph(("Without a rank, since not all of their tables were played: ", *listed(all_named(names)), "."))]


def _mixed(sheet: Sheet) -> list[Block]:
    found = {row["policy"]: row for row in sheet.report.get("mixed", ())}
    lines: list[list[Cell]] = [
        [named(name), number(found[name]["score"]), str(found[name]["tables"])] for name in sheet.names if name in found
    ]
    title = f"Mean {sheet.report['score']} at mixed tables, where all seats play different policies"
    return [Grid(title, ["policy", sheet.report["score"], "tables"], lines)] if lines else []


def _cycles(sheet: Sheet) -> list[Block]:
    cycles = sheet.report.get("cycles", ())
    if not cycles:
        return [Paragraph(("No cycles found: no chain of wins leads back to where it began.",))]
    text: list[str] = ["Cycles, in which no ranking can be right for all pairs: "]
    for place_in_list, cycle in enumerate(cycles):
        text.append("; " if place_in_list else "")
        for name in cycle:
            text += [named(name), " beats "]
        text.append(named(cycle[0]))
    return [Paragraph((*text, "."), alert=True)]


def _seer(sheet: Sheet) -> list[Block]:
    rows = sheet.report.get("seer", ())
    suspects: list[Block] = [
        Paragraph((named(row["policy"]), " among ", named(row["field"]), ": ", printable(row["text"])), alert=True)
        for row in sheet.report.get("suspects", ())
    ]
    if not rows:
        return [*suspects, Paragraph(("No agent that sees all cards was played beside the policies.",))]
    lines: list[list[Cell]] = [
        [
            named(row["field"]),
            number(row["score"]),
            number(row["difference"], plus=True),
            f"{row['score']['deals']:,}",
        ]
        for row in rows
    ]
    text = (
        "It knows every hand and takes the place of one of the field. A policy that sees only what it may should stay "
        "well short of it; one that comes near may have seen cards it should not.",
    )
    heads = ["field", sheet.report["score"], "difference from the field", "deals"]
    silent = sheet.report.get("unjudged", {})
    judged = {row["field"] for row in rows} - set(silent)
    clear: list[Block] = [] if suspects or not judged else [Paragraph(("No policy comes suspiciously near.",))]
    if silent:
        reasons: list[Text] = [(named(field), ": ", printable(reason)) for field, reason in silent.items()]
        clear += [Paragraph(("Among some fields nobody can be suspect:",)), Bullets(reasons)]
    return [Paragraph(text), *suspects, Grid("One that sees all cards in each field", heads, lines), *clear]


def _audit(sheet: Sheet) -> list[Block]:
    rows = sheet.report.get("audit", ())
    if not rows:
        return [Paragraph(("No best responses were sought. That says nothing of how far a policy can be exploited.",))]
    lines: list[list[Cell]] = []
    for row in rows:
        turns = f"{row['turns']:,}" if row.get("turns") else "–"
        gain: list[Cell] = [f"{signed(row['at_least'])}", number(row["gain"], plus=True)]
        deals = [f"{row['deals']:,}", str(row["seed"])] if row["deals"] else ["–", "–"]
        lines.append([named(row["policy"]), row["kind"], *gain, turns, *deals])
    heads = ["against", "response", "gain, at least", "gain measured", "turns of training", "deals", "seed"]
    text = (
        f"What one seat wins{' in points' if sheet.lower else ''} per {sheet.report['episode']} by playing a best "
        "response instead of the policy that all others play; more says that the policy is easier to exploit. A "
        "trained response was measured on deals that it was not trained on and bounds the gain from below alone: a "
        "better one may exist.",
    )
    return [Paragraph(text), Grid("Best responses", heads, lines, words=frozenset({1}))]


def _failures(sheet: Sheet) -> list[Block]:
    rows = sheet.report.get("failures", ())
    missing = [
        f"{policy} among {field}"
        for policy in sheet.report["policies"]
        for field in sheet.report["policies"]
        if (policy, field) not in sheet.against
    ]
    unplayed: list[Block] = (
        [Paragraph(("Tables without numbers, not played or not to their end: ", *listed(all_named(missing)), "."))]
        if missing
        else []
    )
    if not rows:
        return unplayed or [Paragraph(("None: every table was played to its end.",))]
    lines: list[list[Cell]] = [
        [named(row["policy"]), ", ".join(all_named(row["table"])), str(row["deal"]), printable(row["failed"])]
        for row in rows
    ]
    text = "These tables were ended by an error of a policy. No number of this report comes from them."
    return [
        Paragraph((text,), alert=True),
        Grid("Tables that failed", ["policy", "table", "deal", "message"], lines, words=frozenset({1, 3})),
        *unplayed,
    ]


def _reading(sheet: Sheet) -> list[Text]:
    seats = sheet.report["num_players"]
    score = (
        "The score is the penalty of a round in points; lower is better."
        if sheet.lower
        else "The score is the outcome of a match: the winner has 1, the others share −1 (under rules where the first "
        "one out loses, the losers have −1 and the others share 1); higher is better."
    )
    return [
        (score,),
        (
            f"A duplicate deal is the same cards with the same dealer, played {seats} times, each time with every "
            "policy one seat further: all of them play every hand, so that luck of the deal falls on all alike.",
        ),
        (
            "The unit of all statistics is the deal: its games share their cards, so they are averaged first and only "
            "deals are counted. All tables play the same deals, and differences are taken deal by deal before they are "
            "averaged.",
        ),
        (
            f"An interval of {sheet.level} confidence is for the mean over all deals that could be dealt: such "
            f"intervals hold the true mean {sheet.level} of the time. Each stands for itself; among many, some miss.",
        ),
        ("The field of a policy is the other seats, all of which play one policy.",),
        (
            "“First better” is the probability that the first has the better score on a deal; equal scores count half. "
            "It can lie near one half where the means are far apart, if few deals make the difference.",
        ),
    ]


def _numbers(sheet: Sheet) -> list[Block]:
    score, share = sheet.report["score"], "paid" if sheet.lower else "won"
    rows: list[list[Cell]] = []
    for policy in sheet.names:
        for field in sheet.names:
            if (policy, field) in sheet.against:
                row = sheet.against[policy, field]
                numbers = [number(row["score"]), number(row["own"]), number(row["difference"], plus=True)]
                rows.append(
                    [named(policy), named(field), *numbers, percent(row["share"]), f"{row['score']['deals']:,}"]
                )
    heads = ["policy", "field", score, "field's own", "difference", share, "deals"]
    blocks: list[Block] = [Grid("Every policy against every field", heads, rows, left=2, folded=True)]
    values: list[list[Cell]] = [
        [Verbatim(name), printable(str(value)), FIELDS.get(name, "")] for name, value in sheet.report["rules"].items()
    ]
    blocks.append(Grid("Rules by field", ["field", "value", "meaning"], values, words=frozenset({1, 2}), folded=True))
    return blocks
