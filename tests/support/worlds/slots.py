"""A world of words for the choice of slots: workers request copy runs, runs end, tasks become busy."""

from keelman.spark.copy_runs.runs import Owner
from keelman.spark.slots.busy import Busy
from keelman.spark.slots.choice import Need, NewSlot, Slot, SlotLimits, SlotPlace, SlotState, choose, warm
from support.worlds.script import ScriptWorld


class World(ScriptWorld):
    """A Spark service's slots. A requested run is attached at once."""

    def __init__(self) -> None:
        self.slots: dict[str, Slot] = {}
        self.limits = SlotLimits(slots_per_worker=2, runs_per_slot=2, max_slots=4, busy_slots=1)
        self.busy = Busy(10e6)
        self.now = 0.0
        self.made = 0

    def do_limits(self, **fields: str) -> None:
        words = {"warm": fields.pop("warm", "no") == "yes"}
        self.limits = SlotLimits(**{k: int(v) for k, v in fields.items()}, **words)

    def do_ask(self, worker: str, run: str, plugin: str = "", memory: str = "room") -> list[str]:
        """Requests a copy run `connector/task` of a worker."""
        owner = Owner("wc", worker, "1")
        connector, task = run.split("/")
        need = Need(plugin, self.busy.has(("wc", connector, int(task)), self.now))
        result = choose(owner, self.slots.values(), self.limits, need, may_start=memory == "room")
        if isinstance(result, NewSlot):
            self.made += 1
            slot = Slot(
                f"s{self.made}", owner, "", self.now, SlotState.ATTACHED, plugin=result.plugin, alone=result.alone
            )
            slot.runs.add(run)
            self.slots[slot.id] = slot
            return [f"new slot {slot.id}{' of its own' if result.alone else ''}"]
        if isinstance(result, SlotPlace):
            result.slot.runs.add(run)
            return [f"into {result.slot.id} with {len(result.slot.runs)} runs"]
        return [result.message, *([f"{result.evict.id} could end for it"] if result.evict else [])]

    def do_end(self, run: str) -> None:
        for slot in self.slots.values():
            slot.runs.discard(run)

    def do_copies(self, run: str, megabytes: str, seconds: str) -> None:
        """A run copies at this rate for so long, with a report each second."""
        connector, task = run.split("/")
        for _ in range(int(seconds)):
            self.now += 1
            self.busy.note(("wc", connector, int(task)), float(megabytes) * 1e6, self.now)

    def do_warm(self, worker: str) -> list[str]:
        return [
            "a slot is started ahead" if warm(Owner("wc", worker, "1"), self.slots.values(), self.limits) else "no slot"
        ]

    def do_show(self) -> list[str]:
        told = []
        for slot in self.slots.values():
            alone = " alone" if slot.alone else ""
            told.append(f"{slot.id} of {slot.owner.worker}{alone}: {' '.join(sorted(slot.runs)) or 'empty'}")
        return told
