"""Which node was silent for how long, as known to a state service that receives messages."""

from keelman.model.node import NodeFigures
from keelman.state.replicas.heard import Heard

FIGURES = NodeFigures(0.5, 1 << 30, 1 << 40, 0.25)


def test_nobody_is_silent_before_one_listens() -> None:
    now = 100.0
    heard = Heard(clock=lambda: now)
    heard.note("n1")
    now = 200.0
    assert heard.silence("n1") == heard.silence("n2") == 0.0
    heard.listens()
    now = 203.0
    heard.listens()  # it receives messages already
    assert (heard.silence("n1"), heard.silence("n2")) == (3.0, 3.0)
    heard.note("n1")
    now = 205.0
    assert (heard.silence("n1"), heard.silence("n2")) == (2.0, 5.0)
    heard.deaf()
    assert heard.silence("n2") == 0.0
    heard.listens()
    now = 206.0
    assert heard.silence("n2") == 1.0
    heard.begin(True)
    assert heard.silence("n2") == 0.0


def test_figures_stay_until_others_come() -> None:
    heard = Heard(clock=lambda: 1.0)
    heard.note("n1", FIGURES, is_own=True)
    heard.note("n1")
    beat = heard.of("n1")
    assert beat is not None
    assert (beat.figures, beat.is_own) == (FIGURES, False)
    heard.forget("n1")
    assert heard.of("n1") is None
    assert list(heard.newer_than(0.0)) == []
