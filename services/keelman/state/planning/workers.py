"""Plans the workers of worker clusters. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace

from keelman.model.cluster import ClusterGoal, WorkerCluster
from keelman.model.node import NodeState
from keelman.model.workload import Goal, ProcessState, ResourceLimits, Trial, WorkerSpec, Workload
from keelman.state.planning.draft import Draft, NoPort, ports_taken
from keelman.state.planning.drivers import addresses_of
from keelman.state.planning.members import free_names, leavers, selector_words, why_leave, why_not_yet, why_so_many
from keelman.state.planning.rollout import next_of, standing, to_go_back
from keelman.state.planning.worker_specs import SpecMaker, WorkerSpecs, differences, trial_of

STARTED = "its cluster was started"
MAX_TRIED = 5  # nodes without a free port
MAX_LISTED = 3  # workers in a note


def plan_workers(draft: Draft, cluster: WorkerCluster) -> bool:
    """Plans one worker cluster; returns True when it shall be deleted and nothing of it is left."""
    plan = _ClusterPlan(draft, cluster)
    match cluster.goal:
        case ClusterGoal.DELETED:
            plan.delete()
        case ClusterGoal.STOPPED:
            plan.stop()
        case ClusterGoal.RUNNING:
            plan.run()
    if plan.notes:
        draft.worker_notes[cluster.name] = "; ".join(dict.fromkeys(plan.notes))
    return cluster.goal is ClusterGoal.DELETED and not draft.workers_of(cluster.name)


class _ClusterPlan:
    """The plan for one cluster. A wait for anything but its own workers is told in a note."""

    def __init__(self, draft: Draft, cluster: WorkerCluster) -> None:
        self.draft = draft
        self.cluster = cluster
        self.notes: list[str] = []
        self.blocked: set[str] = set()
        """Workers that cannot have their wanted specs, since their ports are taken."""

    def delete(self) -> None:
        for worker in self.draft.workers_of(self.cluster.name):
            self.draft.remove(worker, force=self.cluster.force, reason="its cluster is deleted")

    def stop(self) -> None:
        """Stops the workers. They keep their places; movable ones are forgotten on nodes that they have to leave."""
        force = self.cluster.force
        self._let_go()
        for worker in self._staying():
            leaves = "" if self.cluster.spec.nodes else why_leave(self.draft, self.cluster, worker.node)
            offline = self.draft.snapshot.is_offline(worker.node)
            if offline and force:
                self.draft.forget(worker, f"node {worker.node} is offline, and its cluster was stopped by force")
            elif leaves and not offline and worker.is_in(ProcessState.STOPPED):
                self.draft.remove(worker, reason=leaves)
            else:
                reason = "its cluster was stopped by force" if force else "its cluster was stopped"
                self.draft.set_goal(worker, Goal.STOPPED, force=force, reason=reason)

    def run(self) -> None:
        """Lets workers leave, move, come and change, in this order."""
        self._let_go()
        brokers = self.cluster.spec.broker_cluster
        bootstrap, count = self.draft.bootstrap_of(brokers)
        if not bootstrap:
            self.notes.append(f"waits for the brokers of {brokers} to be placed")
            return
        if (client := self.draft.client_properties_of(self.cluster)) is None:
            self.notes.append(f"waits for its access rules on the brokers of {brokers}")
            return
        if (spark := self.cluster.spec.spark_cluster) and not addresses_of(self.draft, spark):
            self.notes.append(f"waits for the drivers of Spark cluster {spark} to be placed")
            return
        if spark and self.draft.limits.link_tls and not self.cluster.spec.spark_client_properties:
            self.notes.append(f"waits for its certificate for Spark cluster {spark}")
            return
        if (back := to_go_back(self.cluster, self._staying())) is not None:
            history = replace(self.cluster.plugin_history, went_back=back)
            self.cluster = replace(self.cluster, plugin_history=history)
            self.draft.went_back[self.cluster.name] = back
        self.specs = SpecMaker(self.draft, self.cluster, bootstrap, count, client)
        specs_of_workers = self._all_wanted()
        halted = self._halted(specs_of_workers)
        if not self.cluster.spec.nodes:
            while self._move(halted=halted):
                specs_of_workers = self._all_wanted()
        self._place()
        self._change(specs_of_workers, halted=halted)
        self._note_stayers()
        self._note_taken_ports()

    def _staying(self) -> list[Workload]:
        return [w for w in self.draft.workers_of(self.cluster.name) if w.goal is not Goal.REMOVED]

    def _let_go(self) -> None:
        """Continues the removal of leaving workers, and begins it for those beyond the wanted number."""
        force = self.cluster.force
        for worker in self.draft.workers_of(self.cluster.name):
            if worker.goal is Goal.REMOVED:
                self.draft.remove(worker, force=force)
        staying = self._staying()
        going = leavers(self.draft, self.cluster, staying)
        for worker in staying:
            if worker.name in going:
                self.draft.remove(worker, force=force, reason=going[worker.name])

    def _all_wanted(self) -> dict[str, WorkerSpecs]:
        """Returns the wanted specs of the workers in their places, except those, with a note, whose ports are taken."""
        specs_of_workers = {}
        self.blocked.clear()
        for worker in self._staying():
            try:
                specs_of_workers[worker.name] = self.specs.wanted(worker, worker.name, worker.node)
            except NoPort as problem:
                self._block(worker, problem)
        return specs_of_workers

    def _block(self, worker: Workload, problem: NoPort) -> None:
        self.blocked.add(worker.name)
        self.notes.append(str(problem))

    def _still_free(self, worker: Workload) -> bool:
        """Returns False, with a note, when another worker of this plan has got the ports."""
        try:
            self.specs.check_ports(worker, worker.name, worker.node)
        except NoPort as problem:
            self._block(worker, problem)
            return False
        return True

    def _halted(self, worker_specs: Mapping[str, WorkerSpecs]) -> bool:
        """Returns True when a worker failed with a change that others do not have yet."""
        running = [w for w in self._staying() if w.goal is Goal.RUNNING]
        outdated = {w.name for w in running if w.name in worker_specs and worker_specs[w.name].is_change} | self.blocked
        return bool(outdated) and standing(running, outdated, self.draft.snapshot).failed is not None

    def _move(self, *, halted: bool) -> bool:
        """Moves one worker to a node where it may be; returns False when none moves now. Workers leave offline nodes at
        once, others one by one: all others of the cluster run before the next one moves."""
        for worker in self._staying():
            reason = why_leave(self.draft, self.cluster, worker.node)
            if not reason or self._missing(worker):
                continue
            node = self._choose(apart_from={worker.node})
            if node is None:
                continue
            try:
                specs = self.specs.wanted(worker, worker.name, node)
            except NoPort:
                continue
            spec, limits, trial = specs.spec, specs.limits, trial_of(self.cluster)
            if halted and specs.is_change:
                spec, limits = specs.until_then, specs.limits_until_then
                trial = replace(trial, cluster_generation=worker.trial.cluster_generation)
            self.draft.want(worker.name, node, Goal.RUNNING, spec, limits=limits, trial=trial, reason=reason)
            return True
        return False

    def _missing(self, leaving: Workload) -> str:
        """Returns the name of a worker that must run before this one may move; empty when none need."""
        draft = self.draft
        ends = leaving.goal is Goal.RUNNING and leaving.is_in(ProcessState.RUNNING)
        if not ends or draft.snapshot.is_offline(leaving.node):
            return ""
        others = [w for w in self._staying() if w.name != leaving.name and not draft.snapshot.is_offline(w.node)]
        return next((w.name for w in others if not w.is_in(ProcessState.RUNNING)), "")

    def _note_stayers(self) -> None:
        """Notes why workers are still on nodes that they have to leave."""
        if self.cluster.spec.nodes:
            return
        staying: dict[tuple[str, str], list[str]] = {}
        for worker in self._staying():
            if reason := why_leave(self.draft, self.cluster, worker.node):
                staying.setdefault((self._missing(worker), reason), []).append(worker.name)
        for (missing, reason), names in staying.items():
            more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            who = ", ".join(names[:MAX_LISTED]) + more
            self.notes.append(
                f"{who} waits for {missing} to run: {reason}" if missing else f"{reason}: no other takes {who}"
            )

    def _place(self) -> None:
        """Places new workers if the cluster has too few."""
        staying, spec = self._staying(), self.cluster.spec
        names = free_names(self.draft, self.cluster.name)
        have = {w.node for w in staying}
        for node in spec.nodes:
            if node in have:
                continue
            if waits := why_not_yet(self.draft.snapshot.nodes.get(node), node):
                self.notes.append(waits)
            elif problem := self._new(names, node, f"node {node} is among spec.nodes" if have else STARTED):
                self.notes.append(problem)
        for _ in range(0 if spec.nodes else self.cluster.wanted_workers - len(staying)):
            if problem := self._place_anywhere(names, why_so_many(self.cluster) if have else STARTED):
                self.notes.append(problem)
                return

    def _place_anywhere(self, names: Iterator[str], reason: str) -> str:
        """Places one more worker; else returns the reason why it cannot."""
        full: set[str] = set()
        problem = ""
        while len(full) < MAX_TRIED:
            node = self._choose(apart_from=full)
            if node is None:
                return problem or self._no_place()
            problem = self._new(names, node, reason)
            if not problem:
                return ""
            full.add(node)
        return problem

    def _new(self, names: Iterator[str], node: str, reason: str) -> str:
        """Places a new worker on a node; else returns the reason why it cannot."""
        name = next(names)
        try:
            specs = self.specs.wanted(None, name, node)
        except NoPort as problem:
            return str(problem)
        trial = trial_of(self.cluster)
        self.draft.want(name, node, Goal.RUNNING, specs.spec, limits=specs.limits, trial=trial, reason=reason)
        return ""

    def _change(self, worker_specs: Mapping[str, WorkerSpecs], *, halted: bool) -> None:
        """Gives the present spec to workers that start at once, and to running ones in their turn."""
        outdated = set()
        generation = self.cluster.process_generation
        for worker in self._staying():
            specs = worker_specs.get(worker.name)
            if specs is None or not self._still_free(worker):
                continue
            if worker.goal is not Goal.RUNNING:
                self._renew(worker, specs, STARTED)
            elif not specs.is_change:
                still_open = worker.trial.is_open and not worker.is_in(ProcessState.RUNNING)
                trial = replace(worker.trial, cluster_generation=generation, is_open=still_open)
                self._follow_place(worker, specs.spec, specs.limits, trial)
            elif worker.has_run or halted:
                outdated.add(worker.name)
                self._follow_place(worker, specs.until_then, specs.limits_until_then, worker.trial)
            else:
                self._renew(worker, specs, specs.reason)
        running = [w for w in self._staying() if w.goal is Goal.RUNNING]
        while turn := next_of(running, outdated, self.blocked, self.draft.snapshot):
            if self._still_free(turn):
                self._renew(turn, worker_specs[turn.name], worker_specs[turn.name].reason, is_open=True)
                break
        for worker in running:
            if worker.name in outdated and worker.name not in self.blocked:
                self._still_free(worker)

    def _renew(self, worker: Workload, worker_specs: WorkerSpecs, reason: str, *, is_open: bool = False) -> None:
        trial = trial_of(self.cluster, worker, is_open=is_open)
        self.draft.want(
            worker.name, worker.node, Goal.RUNNING, worker_specs.spec, limits=worker_specs.limits, trial=trial,
            reason=reason,
        )  # fmt: skip

    def _follow_place(self, worker: Workload, spec: WorkerSpec, limits: ResourceLimits, trial: Trial) -> None:
        """Gives a worker the consequences of its place at once; reserved ports and the targets of its log delivery do
        not reach its process."""
        had = worker.spec
        if not isinstance(had, WorkerSpec):
            return
        taken = ports_taken(worker)
        reason = f"port {taken[0]} of its node is taken" if had.port in taken else "; ".join(differences(had, spec))
        if (had.reserved_ports, had.log_targets) != (spec.reserved_ports, spec.log_targets):
            had = replace(had, reserved_ports=spec.reserved_ports, log_targets=spec.log_targets)
            self.draft.keep(replace(worker, spec=had, trial=trial))
        self.draft.want(worker.name, worker.node, Goal.RUNNING, spec, limits=limits, trial=trial, reason=reason)

    def _note_taken_ports(self) -> None:
        """Notes the ports of the spec that are taken by something else; chosen ones have been replaced by now."""
        for worker in self._staying():
            for port in ports_taken(worker):
                if port in self.cluster.spec.ports:
                    where = f"port {port} of node {worker.node}"
                    self.notes.append(f"{where} is taken by something else: free it, or give another")

    def _choose(self, *, apart_from: Container[str] = ()) -> str | None:
        own = Counter(w.node for w in self._staying())
        return self.draft.places.choose(self.cluster, own, apart_from=apart_from)

    def _no_place(self) -> str:
        spec, nodes = self.cluster.spec, self.draft.snapshot.nodes.values()
        online = [n for n in nodes if n.state is NodeState.ONLINE]
        if not online:
            return "no node is online to place a worker on"
        if not any(n.takes_new for n in online):
            closed = [f"{n.name} is {'drained' if n.spec.draining else 'cordoned'}" for n in online]
            more = f" and {len(closed) - MAX_LISTED} more" if len(closed) > MAX_LISTED else ""
            return f"no node takes new workers: {', '.join(closed[:MAX_LISTED])}{more}"
        if spec.node_selector and self.draft.places.none_has(spec.node_selector):
            return f"no node that takes new workers has the labels {selector_words(self.cluster)}"
        ports = ", ".join(str(p) for p in spec.ports)
        return f"no node that takes new workers has all of the ports {ports} free for one more"
