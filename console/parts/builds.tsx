/** The builds of a read model beside each other: in use, being built, kept for a way back. */
import type { ComponentChildren } from 'preact';
import type { ReadModelStatus, RebuildStatus } from '../../src/ops/status/status.js';
import { buildName, Holder, lagEvents, lagSeconds, RequestedBy } from './readModelParts.js';
import { Bar } from './readModelTasks.js';
import { type Column, Table } from './table.js';
import { count, duration, Time } from './text.js';

interface Build {
  readonly name: string;
  readonly use: ComponentChildren;
  readonly position?: string | null;
  readonly lag?: string;
  readonly behind?: string;
  readonly rate?: number | null;
  readonly holder?: ComponentChildren;
}

const STATES: Readonly<Record<string, string>> = {
  building: 'being built',
  ready: 'built, waits to be put in use',
  swapping: 'being put in use',
  aborting: 'being aborted',
  leaving: 'being dropped',
};

function buildsOf(status: ReadModelStatus): readonly Build[] {
  const { rebuild, served, previous, previous_release: release } = status;
  const isBack = rebuild !== null && previous !== null && buildName(rebuild) === buildName(previous);
  const folded = (one: Pick<ReadModelStatus, 'position' | 'lag_events' | 'lag_exact' | 'lag_seconds'>) => ({
    position: one.position,
    lag: lagEvents(one),
    behind: lagSeconds(one),
  });
  return [
    ...(served === null
      ? []
      : [
          {
            name: buildName(served),
            use: 'in use, of another release',
            ...folded(served),
            holder: served.holder ?? 'nobody, so it falls behind',
          },
        ]),
    {
      name: buildName(status),
      use: status.in_use ? 'in use' : 'of this release, not in use yet',
      ...folded(status),
      rate: status.per_second,
      holder: <Holder of={status} />,
    },
    ...(rebuild === null
      ? []
      : [
          {
            name: buildName(rebuild),
            use: STATES[rebuild.state] ?? rebuild.state,
            ...(rebuild.events === null || rebuild.total === null
              ? {}
              : { lag: count(Math.max(0, rebuild.total - rebuild.events)) }),
            rate: rebuild.per_second,
            holder: rebuild.holder ?? 'nobody: it waits to be continued',
          },
        ]),
    ...(previous === null || isBack ? [] : [kept(previous, 'kept for a rollback until')]),
    ...(release === null ? [] : [kept(release, 'of the release before, kept until')]),
  ];
}

const kept = (build: NonNullable<ReadModelStatus['previous']>, why: string): Build => ({
  name: buildName(build),
  use: (
    <>
      {why} <Time at={build.until} />
    </>
  ),
});

const COLUMNS: readonly Column<Build>[] = [
  { name: 'Build', cell: ({ name }) => name },
  { name: 'Use', cell: ({ use }) => use },
  { name: 'Position', cell: ({ position }) => <span class="id">{position ?? '–'}</span> },
  { name: 'Events behind', cell: ({ lag = '–' }) => lag, number: true },
  { name: 'Time behind', cell: ({ behind = '–' }) => behind, number: true },
  { name: 'Events/s', cell: ({ rate }) => (typeof rate === 'number' ? count(rate) : '–'), number: true },
  { name: 'Led by', cell: ({ holder = '–' }) => holder },
];

export function Builds({ status }: { readonly status: ReadModelStatus }) {
  const { rebuild } = status;
  return (
    <>
      <Table
        caption="Builds"
        columns={COLUMNS}
        rows={buildsOf(status)}
        keyOf={({ name }) => name}
        none="There is no build."
      />
      {rebuild === null ? null : <RebuildProgress rebuild={rebuild} />}
    </>
  );
}

function RebuildProgress({ rebuild }: { readonly rebuild: RebuildStatus }) {
  const { kind, by, at, reason, state, events, total, per_second, seconds_left } = rebuild;
  const title = kind === 'rollback' ? 'Rollback' : 'Rebuild';
  return (
    <section aria-label={title}>
      <h2>
        {title} to {buildName(rebuild)}
      </h2>
      <p role="status">It is {STATES[state] ?? state}.</p>
      <RequestedBy by={by} at={at} reason={reason} />
      {events === null || total === null ? null : (
        <>
          <Bar label={title} share={total === 0 ? null : Math.min(1, events / total)} unknown="Not started" />
          <p>
            {count(events)} of some {count(total)} events
            {per_second === null ? null : `, ${count(per_second)} a second`}
            {seconds_left === null ? null : `, ${duration(seconds_left)} left`}
          </p>
        </>
      )}
    </section>
  );
}
