"""The page of symptoms: each is settled by a command that prints what the page says, or by a test that is there."""

import re

import pytest

from tools.claims import has_test
from tools.settings import ROOT
from tools.source import read_chapter
from tools.symptoms import as_page, read_symptoms

SYMPTOMS = read_symptoms()
COMMANDS = [pytest.param(*command, id=symptom.id) for symptom in SYMPTOMS for command in symptom.commands]


@pytest.mark.parametrize(("command", "lines"), COMMANDS)
def test_a_command_prints_what_the_page_says(command, lines, lab, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("BOOK_LANG", "en")
    status, out, err = lab(*command.split())
    assert status == 0, err
    printed = " ".join(out.split())
    for line in lines:
        assert line in printed


def test_a_symptom_leads_to_a_section_a_report_and_one_thing_that_settles_it():
    assert len({symptom.id for symptom in SYMPTOMS}) == len(SYMPTOMS) >= 12
    for symptom in SYMPTOMS:
        page, _, anchor = symptom.section.partition("#")
        assert anchor in read_chapter(ROOT / f"chapters/src/{page}.md").anchors, symptom.id
        assert all(re.fullmatch(r"[\w-]+/[\w.-]+#\d+", source) for source in symptom.sources) and symptom.sources
        assert bool(symptom.run) != bool(symptom.test)
        assert symptom.run or not symptom.mended, symptom.id
        assert all(printed for _, printed in symptom.commands), symptom.id
        assert not symptom.test or has_test(symptom.test, ROOT)


def test_the_page_is_made_of_the_data():
    assert (ROOT / "chapters/src/symptoms.md").read_text(encoding="utf-8") == as_page(SYMPTOMS)
