"""`hooks`: what may hold a step of a node's maintenance."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from reconciler.calendar.values import format_duration, literal
from reconciler.features.hooks.hook import HookKind
from reconciler.model import limits
from reconciler.model.drains import HeldPods
from reconciler.model.limits import count_of
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.steps import HeldStep
from reconciler.settings.fields import Duration, Flag, Header, SecretText, Section, Selector, Url, for_nodes
from reconciler.settings.mistakes import Mistake, Mistakes
from reconciler.settings.schema import FeatureSection, Settings

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{literal(value)} is not a name of lower-case letters, digits and '-', at most 40")
    return value


def _job_spec(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{literal(value)} is not the spec of a Job: a mapping with `template`")
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("has a value that JSON does not know; write dates in quotes") from None
    if len(text) > limits.ANNOTATION:
        raise ValueError(f"is longer than {limits.ANNOTATION} characters")
    template = value.get("template")
    pod = template.get("spec") if isinstance(template, Mapping) else None
    containers = pod.get("containers") if isinstance(pod, Mapping) else None
    if not isinstance(containers, list) or not all(
        isinstance(container, Mapping) for container in containers
    ):
        raise ValueError("has no template.spec.containers, a list of containers")
    if not containers:
        raise ValueError("has no container in template.spec.containers")
    return dict(value)


HookName = Annotated[str, PlainValidator(_name), WithJsonSchema({"type": "string", "minLength": 1})]
JobSpec = Annotated[dict[str, Any], PlainValidator(_job_spec), WithJsonSchema({"type": "object"})]


class JobHook(Section):
    """A Job that has to succeed before the step goes on."""

    spec: JobSpec = Field(description="Its spec, as in `kind: Job`.")
    on_node: Flag = Field(default=False, description="Whether it runs on the node itself.")


class WebhookHook(Section):
    """A URL that has to answer 2xx before the step goes on."""

    url: Url = Field(description="Where the POST goes.")
    headers: dict[Header, SecretText] = Field(
        default={}, description="Further headers; secrets. Default: none."
    )
    timeout: Duration = Field(
        default=timedelta(seconds=5), description="How long one request may take, 1m at most."
    )

    @model_validator(mode="after")
    def _ends_soon(self) -> WebhookHook:
        if not timedelta() < self.timeout <= timedelta(minutes=1):
            raise Mistakes((Mistake(("timeout",), "is not between 1s and 1m"),))
        return self


class ConfiguredHook(Section):
    """A hook of every node that the selector selects."""

    name: HookName = Field(description="Its name, unique in its step.")
    node_selector: Selector = Field(default=EVERYTHING, description="Its nodes. Default: all.")
    job: JobHook | None = Field(default=None, description="A Job that has to succeed. Default: none.")

    webhook: WebhookHook | None = Field(
        default=None, description="A URL that has to answer 2xx. Default: none."
    )

    @model_validator(mode="after")
    def _does_one_thing(self) -> ConfiguredHook:
        if (self.job is None) == (self.webhook is None):
            raise Mistakes((Mistake(("name",), "names a hook that needs either `job` or `webhook`"),))
        return self

    @property
    def kind(self) -> HookKind:
        """What the hook is."""
        return HookKind.JOB if self.job is not None else HookKind.WEBHOOK


class Hooks(Section):
    """What may hold a step of a node's maintenance, see docs/hooks.md."""

    timeout: Duration = Field(
        default=timedelta(minutes=10),
        description="How long a hook may hold its step (docs/hooks.md). 0s: not at all.",
    )
    pre_drain: tuple[ConfiguredHook, ...] = Field(
        default=(), description="Hooks between cordon and drain, at most 20. Default: none."
    )
    post_drain: tuple[ConfiguredHook, ...] = Field(
        default=(), description="Hooks after the drain, at most 20. Default: none."
    )
    pre_uncordon: tuple[ConfiguredHook, ...] = Field(
        default=(), description="Hooks before the uncordon, at most 20. Default: none."
    )

    @model_validator(mode="after")
    def _few_and_told_apart(self) -> Hooks:
        found = []
        for key, entries in (
            ("preDrain", self.pre_drain),
            ("postDrain", self.post_drain),
            ("preUncordon", self.pre_uncordon),
        ):
            if len(entries) > limits.HOLDERS:
                many = count_of(len(entries), "hook")
                found.append(Mistake((key,), f"has {many}, and {limits.HOLDERS} is the limit"))
            names = [entry.name for entry in entries]
            found += [
                Mistake((key, index, "name"), f"is the name of another hook of this step: {name}")
                for index, name in enumerate(names)
                if name in names[:index]
            ]
        if found:
            raise Mistakes(tuple(found))
        return self

    def of(self, step: HeldStep) -> tuple[ConfiguredHook, ...]:
        """Return the hooks of a step."""
        match step:
            case HeldStep.PRE_DRAIN:
                return self.pre_drain
            case HeldStep.POST_DRAIN:
                return self.post_drain
            case HeldStep.PRE_UNCORDON:
                return self.pre_uncordon

    @property
    def configured(self) -> tuple[ConfiguredHook, ...]:
        """The hooks of all steps."""
        return (*self.pre_drain, *self.post_drain, *self.pre_uncordon)


class _Hooks(FeatureSection[Hooks], frozen=True, kw_only=True):
    def explained(self, settings: Settings) -> Iterator[str]:
        """Yield the hooks of the settings. The URL of a webhook may be a secret, so it is not shown."""
        section = self.of(settings)
        if not section.configured:
            return
        yield "Hooks"
        for step in HeldStep:
            for hook in section.of(step):
                yield f"  {step}.{hook.name} ({hook.kind}) holds {step.words}{for_nodes(hook.node_selector)}."
        yield (
            f"  Each for {format_duration(section.timeout)} at most."
            if section.timeout
            else "  They have no time, and hold nothing."
        )

    def selectors(self, settings: Settings) -> list[LabelSelector]:
        return [hook.node_selector for hook in self.of(settings).configured]

    def holds_pods(self, settings: Settings) -> HeldPods | None:
        timeout = self.of(settings).timeout
        return HeldPods("hook", timeout) if timeout else None


HOOKS = _Hooks(
    key="hooks",
    type=Hooks,
    default=Hooks(),
    description="What may hold a step of a node's maintenance. See docs/hooks.md.",
    after="uncordon",
)
SECTIONS = (HOOKS,)
